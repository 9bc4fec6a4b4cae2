// Prints what CHANGELOG.md says about a version, and nothing about other ones.
//   node scripts/release-notes.js VERSION [CHANGELOG.md]
// Fails if that version has no section, or one without its date: `## 1.2.3 (2026-01-15)`.
import { readFileSync } from 'node:fs'

const [version = '', file = new URL('../CHANGELOG.md', import.meta.url)] = process.argv.slice(2)
const sections = readFileSync(file, 'utf8').split(/^## /m).slice(1)
const section = sections.find((text) => text.startsWith(`${version} `))
const [heading = '', ...lines] = section?.split('\n') ?? []
if (section === undefined) fail(`CHANGELOG.md has no section for ${version}`)
else if (!/^\S+ \(\d{4}-\d{2}-\d{2}\)$/.test(heading)) fail(`CHANGELOG.md dates no release: ${heading}`)
else if (lines.join('').trim() === '') fail(`CHANGELOG.md says nothing about ${version}`)
else console.log(lines.join('\n').trim())

function fail(reason) {
  console.error(reason)
  process.exitCode = 1
}
