import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { unpackTar } from 'modern-tar'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Archiving, createArchiving } from '../../../src/node/backup/archiving.ts'
import type { Manifest } from '../../../src/app/system/backup/format/manifest.ts'
import { MANIFEST } from '../../../src/app/system/backup/format/names.ts'

let directory: string
let archiving: Archiving

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'archiving-'))
  archiving = createArchiving()
  writeFileSync(join(directory, MANIFEST), '{}')
})
afterEach(async () => {
  await archiving.close()
  rmSync(directory, { recursive: true })
})

/** Of a backup with these files. Only the names and the time of a manifest count here. */
function manifestOf(...files: string[]): Manifest {
  const tables = files.map((file) => ({ name: file, file, columns: [], rows: 0, bytes: 0, sha256: '', sequence: null }))
  return { formatVersion: 1, appVersion: '1', schema: '', createdAt: 0, kind: 'manual', tables, sha256: '' }
}

function fill(file: string, bytes: number): Buffer {
  const content = Buffer.from(Array.from({ length: bytes / 8 }, (_, n) => String(n * 7919).padStart(8, ' ')).join(''))
  writeFileSync(join(directory, file), content)
  return content
}

async function unpacked(archive: ReadableStream<Uint8Array>): Promise<Map<string, string>> {
  const chunks: Uint8Array[] = []
  for await (const chunk of archive) chunks.push(chunk)
  const entries = await unpackTar(gunzipSync(Buffer.concat(chunks)))
  return new Map(entries.map(({ header, data }) => [header.name, Buffer.from(data ?? []).toString()]))
}

test('archives made at once each have their own files, whole', async () => {
  const [one, two] = [fill('one.json', 3_000_000), fill('two.json', 1_000_000)]
  const [first, second] = await Promise.all([
    unpacked(archiving.archive(directory, 'first', manifestOf('one.json', 'two.json'))),
    unpacked(archiving.archive(directory, 'second', manifestOf('two.json'))),
  ])
  expect([...first.keys()]).toEqual(['first/', `first/${MANIFEST}`, 'first/one.json', 'first/two.json'])
  expect(first.get('first/one.json')).toBe(one.toString())
  expect([...second.keys()]).toEqual(['second/', `second/${MANIFEST}`, 'second/two.json'])
  expect(second.get('second/two.json')).toBe(two.toString())
})

test('an archive whose file is missing fails; another one goes on, and the next one begins', async () => {
  const content = fill('one.json', 3_000_000)
  const going = archiving.archive(directory, 'going', manifestOf('one.json')).getReader()
  const { value: begin } = await going.read()
  await expect(unpacked(archiving.archive(directory, 'lost', manifestOf('gone.json')))).rejects.toThrow(
    'gone.json is missing',
  )
  const rest: Uint8Array[] = [begin ?? new Uint8Array()]
  for (let next = await going.read(); !next.done; next = await going.read()) rest.push(next.value)
  const entries = await unpackTar(gunzipSync(Buffer.concat(rest)))
  expect(entries.map(({ data }) => data?.length ?? 0)).toEqual([
    0,
    readFileSync(join(directory, MANIFEST)).length,
    content.length,
  ])
  expect((await unpacked(archiving.archive(directory, 'next', manifestOf('one.json')))).size).toBe(3)
})

test('closing ends an archive that is being read with an error, not as if it were complete', async () => {
  fill('one.json', 3_000_000)
  const reader = archiving.archive(directory, 'cut', manifestOf('one.json')).getReader()
  await reader.read()
  await archiving.close()
  await expect(reader.read()).rejects.toThrow('the archive thread has ended')
})
