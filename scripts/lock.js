// Three things that npm writes into the lock file keep a newcomer from installing, and come back whenever npm rewrites it:
// - npm 10 and 11 run `node-gyp rebuild` for better-sqlite3 unless its entry says `"gypfile": false` (npm/cli#9837). Its
//   binaries are prebuilt: a machine without compilers must not build.
// - Tools that refuse the Node of the newcomer print warnings, or end the installation if `engine-strict` is set. They
//   never run on it: npm scripts find the Node in node_modules/.bin first.
// - The preinstall script of @meshtastic/core lets only pnpm install it. npm runs no script of a package whose entry does
//   not mention one.
// `node scripts/lock.js` fails if they are there, `node scripts/lock.js --fix` removes them.
import { readFileSync, writeFileSync } from 'node:fs'
import semver from 'semver'

const file = new URL('../package-lock.json', import.meta.url)
const { devEngines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const lock = JSON.parse(readFileSync(file, 'utf8'))

const wrong = Object.entries(lock.packages).flatMap(([path, entry]) => {
  const builds = path.endsWith('node_modules/better-sqlite3') && entry.gypfile !== false
  const node = path === '' || entry.optional === true ? undefined : entry.engines?.node
  const refuses = node !== undefined && !semver.subset(devEngines.runtime.version, node)
  const insists = path.endsWith('node_modules/@meshtastic/core') && entry.hasInstallScript === true
  if (builds) entry.gypfile = false
  if (insists) delete entry.hasInstallScript
  if (refuses) delete entry.engines
  return [
    builds && `${path} lacks "gypfile": false`,
    refuses && `${path} refuses Node ${node}`,
    insists && `${path} has a script`,
  ].filter(Boolean)
})
if (!Object.keys(lock.packages).some((path) => path.endsWith('node_modules/better-sqlite3'))) {
  throw new Error('package-lock.json does not name better-sqlite3')
}
if (wrong.length > 0 && process.argv.includes('--fix')) {
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
} else if (wrong.length > 0) {
  console.error(`package-lock.json: ${wrong.join(', ')}; run \`node scripts/lock.js --fix\``)
  process.exitCode = 1
}
