import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }

const ROOT = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const scratch = mkdtempSync(join(tmpdir(), 'mesh-release-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const CHANGELOG = `# Changelog

## 1.1.0 (unreleased)

- Not yet.

## 1.0.0 (2026-01-15)

For operators.

### Added

- A thing.

## 1.0.0-rc.1 (2026-01-01)

- An older thing.

## 0.9.0 (2025-12-01)
`

function notes(version: string) {
  const file = join(scratch, 'CHANGELOG.md')
  writeFileSync(file, CHANGELOG)
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, 'scripts/release-notes.js'), version, file],
    { encoding: 'utf8' },
  )
  return { status, stdout, stderr }
}

test('the notes of a release are those of its version only', () => {
  expect(notes('1.0.0')).toStrictEqual({
    status: 0,
    stdout: 'For operators.\n\n### Added\n\n- A thing.\n',
    stderr: '',
  })
  expect(notes('1.0.0-rc.1')).toMatchObject({ status: 0, stdout: '- An older thing.\n' })
})

test.each([
  ['1.1.0', 'CHANGELOG.md dates no release: 1.1.0 (unreleased)\n'],
  ['1.2.0', 'CHANGELOG.md has no section for 1.2.0\n'],
  ['1.0', 'CHANGELOG.md has no section for 1.0\n'],
  ['0.9.0', 'CHANGELOG.md says nothing about 0.9.0\n'],
])('there is no release %s: %s', (version, stderr) => {
  expect(notes(version)).toStrictEqual({ status: 1, stdout: '', stderr })
})

test('a tag of another version is refused', () => {
  const { status, stderr } = spawnSync('sh', ['scripts/release.sh', 'version', 'v0.0.1'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  expect([status, stderr]).toStrictEqual([1, `The tag is v0.0.1, package.json says ${manifest.version}\n`])
})

test('the changelog begins with the version of package.json', () => {
  expect(/^## (\S+) \(/m.exec(read('CHANGELOG.md'))?.[1]).toBe(manifest.version)
})

test.each(['README.md', 'docs/install.md', 'docs/container.md'])(
  '%s names the archive and image of this version',
  (page) => {
    const named = Array.from(
      read(page).matchAll(/(?:mesh-monitoring-service-|ghcr\.io\/OWNER\/REPOSITORY:)(\d[\w.-]*?)(?=\.tgz|[`\s])/g),
      ([, version]) => version,
    )
    expect(named.length).toBeGreaterThan(0)
    expect(new Set(named)).toStrictEqual(new Set([manifest.version]))
  },
)

test('compose.yaml builds an image in a clone, and names that of a release in a release', () => {
  const text = read('compose.yaml')
  const { mesh } = parse(text).services
  expect(mesh).toMatchObject({ build: '.', image: '${MESH_IMAGE:-mesh-monitoring-service}' })
  const [change = ''] = /sed -e [^]*? compose\.yaml/.exec(read('scripts/release.sh')) ?? []
  const { stdout } = spawnSync('sh', ['-c', change], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], image: 'registry.example.org/anna/mesh', version: '1.2.3' },
  })
  const { build, image, ...others } = parse(stdout).services.mesh
  expect([build, image]).toStrictEqual([undefined, 'registry.example.org/anna/mesh:1.2.3'])
  expect({ ...others, build: mesh.build, image: mesh.image }).toStrictEqual(mesh)
  expect(stdout).not.toContain('clone')
})
