import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type CopyingService, openCopying, readByAge } from '../../support/copies/service.ts'

let here: CopyingService
/** A share to which others may write. */
let share: string
/** A file of the service that nobody else may write. */
let precious: string

beforeEach(async () => {
  here = await openCopying()
  share = `${here.here.dataDir}-share`
  mkdirSync(share)
  precious = join(here.here.dataDir, 'precious')
  writeFileSync(precious, 'as it was')
})
afterEach(async () => {
  rmSync(share, { recursive: true })
  await here.close()
})

test('a link that somebody plants in the folder leads to no other file', async () => {
  const marker = join(share, '.mesh-copies')
  symlinkSync(precious, marker)
  const place = { name: 'share', kind: 'folder', settings: { path: share } }
  expect((await here.admin.send('POST', '/api/system/copies', place)).status).toBe(400)
  rmSync(marker)
  await here.add('share', 'folder', { path: share })
  const name = await here.backUp()
  const file = `${name}.tar.gz.age`
  for (const planted of [`${file}.unfinished`, file]) symlinkSync(precious, join(share, planted))
  await here.copies.round()
  expect(readFileSync(precious, 'utf8')).toBe('as it was')
  expect((await here.state()).copies).toMatchObject([{ name, state: 'made' }])
  expect(lstatSync(join(share, file)).isFile()).toBe(true)
  expect(readByAge(here.identity, readFileSync(join(share, file)))).toContain(`${name}/manifest.json`)
  expect(readdirSync(share).toSorted()).toEqual(['.mesh-copies', file])
})

test('two services never share a folder', async () => {
  await here.add('share', 'folder', { path: share })
  const other = await openCopying()
  try {
    const place = { name: 'share', kind: 'folder', settings: { path: share } }
    const refused = await other.admin.send('POST', '/api/system/copies', place)
    expect([refused.status, Object(await refused.json()).detail]).toEqual([
      400,
      expect.stringContaining('another service'),
    ])
    // The disks are changed at the mount point.
    const marker = join(share, '.mesh-copies')
    const own = readFileSync(marker)
    rmSync(marker)
    await other.add('share', 'folder', { path: share })
    writeFileSync(marker, own)
    await other.backUp()
    await other.copies.round()
    expect((await other.state()).places).toMatchObject([{ problem: expect.stringContaining('another service') }])
    expect(readdirSync(share)).toEqual(['.mesh-copies'])
  } finally {
    await other.close()
  }
})

test('a place that was added while the clock was ahead gets each new copy', async () => {
  const YEAR = 365 * 86_400_000
  await here.add('share', 'folder', { path: share })
  here.app.store.sqlite.prepare('update copy_places set created_at = created_at + ?').run(YEAR)
  here.app.clock.advance(YEAR)
  const ahead = await here.backUp()
  here.app.clock.advance(-YEAR)
  const names = [ahead]
  for (let hour = 0; hour < 2; hour++) {
    here.app.clock.advance(3_600_000)
    names.push(await here.backUp())
    await here.copies.round()
  }
  const { copies } = await here.state()
  expect(copies.map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual(
    names.map((name) => `${name} made`).toSorted(),
  )
})
