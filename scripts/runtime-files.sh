#!/bin/sh
# Copies what the built service needs at run time on this machine, and nothing else, into the folder $1. The build
# contains its packages, except @node-rs/bcrypt, which is native.
set -eu
to=$1
libc=$(node -p "process.platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime ? 'musl' : ''")
platform=$(node -p process.platform)
binary="$platform$libc-$(node -p process.arch).node"
# Of one folder for each machine: the binary for serial ports.
serial="*/$platform-*$(node -p process.arch)*/*$([ "$platform" != linux ] || echo ".${libc:-glibc}").node"
mkdir -p "$to/node_modules/@node-rs" "$to/drizzle/meta"
cp -r dist package.json LICENSE "$to"
find "$to/dist/prebuilds" -type f ! -name "$binary" ! -path "$serial" -delete
find "$to/dist/prebuilds" -type d -empty -delete
cp drizzle/*.sql "$to/drizzle"
cp drizzle/meta/_journal.json "$to/drizzle/meta"
cp -r node_modules/@node-rs/bcrypt* "$to/node_modules/@node-rs"
# Of the binaries for all machines, the list of what ships keeps those that are here.
node -e '
  const { existsSync, readFileSync, writeFileSync } = require("node:fs")
  const file = `${process.argv[1]}/dist/sbom.cdx.json`
  const list = JSON.parse(readFileSync(file, "utf8"))
  const ships = ({ name, scope }) => scope !== "optional" || existsSync(`${process.argv[1]}/node_modules/${name}`)
  list.components = list.components.filter(ships).map(({ scope, ...component }) => component)
  writeFileSync(file, `${JSON.stringify(list, null, 2)}\n`)
' "$to"
