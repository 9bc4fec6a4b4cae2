#!/bin/sh
# Copies what the built service needs at run time, and nothing else, into the folder $1: the build carries the
# pure-JavaScript packages in itself; native ones, and one that is loaded on demand, stay packages.
set -eu
to=$1
platform=$(node -p "process.platform + (process.platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime ? 'musl' : '')")
arch=$(node -p process.arch)
mkdir -p "$to/node_modules/better-sqlite3/prebuilds" "$to/node_modules/@node-rs" "$to/node_modules/@redis/client"
cp -r dist drizzle package.json LICENSE "$to"
cp -r node_modules/better-sqlite3/package.json node_modules/better-sqlite3/LICENSE node_modules/better-sqlite3/lib "$to/node_modules/better-sqlite3"
cp "node_modules/better-sqlite3/prebuilds/$platform-$arch.node" "$to/node_modules/better-sqlite3/prebuilds"
cp -r node_modules/@node-rs/bcrypt* "$to/node_modules/@node-rs"
cp -r node_modules/@redis/client/package.json node_modules/@redis/client/dist "$to/node_modules/@redis/client"
find "$to/node_modules" -name '*.map' -delete
find "$to/node_modules" -name '*.d.ts' -delete
