// npm 10 and 11 run `node-gyp rebuild` for better-sqlite3 unless its lock entry says `"gypfile": false`, and drop that line
// whenever they rewrite the lock file (npm/cli#9837). Its binaries are prebuilt: a machine without compilers must not build.
// `node scripts/lock.js` fails if the line is missing, `node scripts/lock.js --fix` restores it.
import { readFileSync, writeFileSync } from 'node:fs'

const file = new URL('../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(file, 'utf8'))
const entries = Object.entries(lock.packages).filter(([path]) => path.endsWith('node_modules/better-sqlite3'))
if (entries.length === 0) throw new Error('package-lock.json does not name better-sqlite3')
const wrong = entries.filter(([, entry]) => entry.gypfile !== false)
if (wrong.length > 0 && process.argv.includes('--fix')) {
  for (const [, entry] of wrong) entry.gypfile = false
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
} else if (wrong.length > 0) {
  console.error('package-lock.json: better-sqlite3 lacks "gypfile": false; run `node scripts/lock.js --fix`')
  process.exitCode = 1
}
