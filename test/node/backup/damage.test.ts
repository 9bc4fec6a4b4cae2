import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listBackups } from '../../../src/node/backup/folder/directory.ts'
import { readSoundManifest } from '../../../src/node/backup/inspect.ts'
import { readManifest } from '../../../src/node/backup/folder/read-manifest.ts'
import { integrity, useVictim } from '../../support/backup/damaged-backup.ts'

const { pristine, backup, file, edit, inspect, expectRefused } = useVictim()

test('an undamaged backup has no problems', () => {
  expect(inspect()).toMatchObject({ ok: true, problems: [], signature: 'own' })
})

test('every changed byte of the manifest is detected', () => {
  const bytes = readFileSync(file('manifest.json'))
  const unseen: number[] = []
  const written = openSync(file('manifest.json'), 'r+')
  for (const [at, byte] of bytes.entries()) {
    writeSync(written, Buffer.of(byte ^ 0x01), 0, 1, at)
    try {
      readManifest(backup)
      unseen.push(at)
    } catch {
      // This is the expected result.
    }
    writeSync(written, Buffer.of(byte), 0, 1, at)
  }
  closeSync(written)
  expect(readFileSync(file('manifest.json')).equals(bytes)).toBe(true)
  expect(bytes.length).toBeGreaterThan(5000)
  expect(unseen).toStrictEqual([])
})

test('a flipped bit is detected in each file: at its head, in a row, at a line end and at its end', async () => {
  for (const name of readdirSync(pristine)) {
    const bytes = readFileSync(file(name))
    const places = [0, 12, Math.floor(bytes.length / 2), bytes.lastIndexOf(10, -2), bytes.length - 1]
    for (const at of places) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 0x10
      writeFileSync(file(name), changed)
      await expectRefused({ part: name })
      expect(inspect()).toMatchObject({ ok: false, problems: [expect.stringContaining(name)] })
    }
    writeFileSync(file(name), bytes)
  }
})

test.each<[string, () => void, string]>([
  [
    'a truncated table',
    () => truncateSync(file('telemetry.json'), 1000),
    'telemetry.json has 1000 bytes, the manifest says',
  ],
  ['an emptied table', () => truncateSync(file('users.json')), 'users.json has 0 bytes'],
  ['a lengthened table', () => appendFileSync(file('users.json'), ' '), 'users.json has'],
  ['a removed table', () => rmSync(file('nodes.json')), 'nodes.json is missing'],
  ['a removed manifest', () => rmSync(file('manifest.json')), 'manifest.json is missing'],
  ['an emptied manifest', () => truncateSync(file('manifest.json')), 'manifest.json is not JSON'],
  ['a truncated manifest', () => truncateSync(file('manifest.json'), 3000), 'manifest.json is not JSON'],
  ['a huge manifest', () => truncateSync(file('manifest.json'), 2 ** 33), 'manifest.json has 8589934592 bytes'],
  ['a manifest that is a list', () => writeFileSync(file('manifest.json'), '[]'), 'manifest.json'],
  [
    'a manifest with other indentation',
    () => edit('manifest.json', (text) => text.replace('  "kind"', '\t"kind"')),
    'manifest.json does not match',
  ],
  [
    'a manifest without its last line break',
    () => edit('manifest.json', (text) => text.trimEnd()),
    'manifest.json does not match',
  ],
  ['a swap of two tables', () => swap('between', 'users.json', 'nodes.json'), '.json'],
  ['an added file', () => writeFileSync(file('more.json'), '{}'), '"more.json" does not belong to the backup'],
  ['an added hidden file', () => writeFileSync(file('.hidden'), ''), '".hidden" does not belong to the backup'],
  [
    'a directory in place of a table',
    () => replace('users.json', (path) => mkdirSync(path)),
    'users.json is not a regular file',
  ],
  [
    'a link in place of a table',
    () => replace('users.json', (path) => symlinkSync(join(pristine, 'users.json'), path)),
    'users.json is not a regular file',
  ],
  [
    'a link in place of the manifest',
    () => replace('manifest.json', (path) => symlinkSync(join(pristine, 'manifest.json'), path)),
    'manifest.json is not a regular file',
  ],
  [
    'a FIFO in place of a table',
    () => replace('users.json', (path) => execFileSync('mkfifo', [path])),
    'users.json is not a regular file',
  ],
  [
    'a FIFO in place of the manifest',
    () => replace('manifest.json', (path) => execFileSync('mkfifo', [path])),
    'manifest.json is not a regular file',
  ],
  [
    'a device in place of a table',
    () => replace('users.json', (path) => symlinkSync('/dev/zero', path)),
    'users.json is not a regular file',
  ],
])('%s is detected', async (_what, damage, problem) => {
  damage()
  await expectRefused({ part: problem })
  expect(inspect()).toMatchObject({ ok: false })
})

function replace(name: string, make: (path: string) => void): void {
  rmSync(file(name))
  make(file(name))
}

function swap(between: string, one: string, other: string): void {
  renameSync(file(one), file(between))
  renameSync(file(other), file(one))
  renameSync(file(between), file(other))
}

test('a socket in place of a table is detected', async () => {
  rmSync(file('users.json'))
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(file('users.json'), resolve))
  await expectRefused(integrity('users.json is not a regular file'))
  await new Promise((resolve) => server.close(resolve))
})

test('a link to a backup is not a backup', async () => {
  rmSync(backup, { recursive: true })
  symlinkSync(pristine, backup)
  await expectRefused(/^refused Backup directory not found: /)
})

test('all problems are reported, not only the first', () => {
  truncateSync(file('users.json'), 10)
  rmSync(file('nodes.json'))
  writeFileSync(file('added'), '')
  expect(inspect().problems.map((problem) => problem.split(' ')[0])).toStrictEqual([
    '"added"',
    'nodes.json',
    'users.json',
  ])
})

test('a file in place of the backup directory contains no backups', async () => {
  const directory = join(backup, '..')
  rmSync(directory, { recursive: true })
  writeFileSync(directory, '')
  await expectRefused(/^refused Backup directory not found: /)
  expect(await listBackups(directory)).toStrictEqual([])
  rmSync(directory)
  mkdirSync(directory)
})

test('a backup that belongs to another user is distinguished from a damaged one, and hides no other', async () => {
  const other = '2026-01-15_120001'
  cpSync(pristine, join(backup, '..', other), { recursive: true })
  chmodSync(backup, 0o000)
  // The administrator of the machine may read everything.
  const isRoot = process.getuid?.() === 0
  chmodSync(join(backup, '../..'), 0o711)
  chmodSync(join(backup, '..'), 0o755)
  if (isRoot) for (const path of [other, `${other}/manifest.json`]) chmodSync(join(backup, '..', path), 0o755)
  if (isRoot) process.seteuid?.(65_534)
  try {
    const line = `Restore failed: ${file('manifest.json')} can't be read by the user of the service; change its owner or its mode`
    expect(inspect().problems).toStrictEqual([line])
    expect(() => readSoundManifest(backup, [])).toThrow(line)
    const listed = await listBackups(join(backup, '..'))
    expect(listed.map(({ name }) => name)).toStrictEqual([other])
  } finally {
    if (isRoot) process.seteuid?.(0)
    chmodSync(backup, 0o700)
  }
})
