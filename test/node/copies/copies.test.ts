import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { evaluateRules } from '../../../src/app/alerts/findings/evaluate.ts'
import { readTarget } from '../../../src/app/system/copies/settings.ts'
import { encryptBackup } from '../../../src/node/backup/copies/encrypt.ts'
import { placeOpener } from '../../../src/node/backup/copies/places/open-place.ts'
import { diskFiles, type Files } from '../../../src/node/backup/folder/files.ts'
import { auditRows } from '../../support/app.ts'
import type { Fault, Front } from '../../support/copies/front.ts'
import { SECRET_KEY, startS3, type S3 } from '../../support/copies/s3.ts'
import {
  type CopyingService,
  davSettings,
  makeKey,
  openCopying,
  readByAge,
  s3Settings,
} from '../../support/copies/service.ts'
import { DAV_PASSWORD, startWebDav, type WebDav } from '../../support/copies/webdav.ts'

let s3: S3
let dav: WebDav
let here: CopyingService

beforeAll(async () => {
  s3 = await startS3()
  dav = await startWebDav()
})
afterAll(async () => {
  await Promise.all([s3.close(), dav.close()])
})
beforeEach(async () => {
  folder = `hill-${Number(folder.slice(5)) + 1}`
  here = await openCopying()
})
afterEach(async () => {
  for (const front of [s3.front, dav.front]) {
    front.fault = () => null
    front.seen.length = 0
  }
  await here.close()
})

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const KINDS = ['s3', 'webdav'] as const

const frontOf = (kind: (typeof KINDS)[number]): Front => (kind === 's3' ? s3.front : dav.front)
/** An own folder for each test. */
let folder = 'hill-0'
const settingsOf = (kind: (typeof KINDS)[number]) =>
  kind === 's3' ? s3Settings(s3.front.url, folder) : davSettings(dav.front.url, folder)
/** What is at the place. */
const copiesAt = async (kind: (typeof KINDS)[number]): Promise<Map<string, Buffer>> =>
  kind === 's3' ? s3.objects(`${folder}/`) : dav.files(folder)

const CHANGES = [
  ['removed', (id: number) => here.admin.send('DELETE', `/api/system/copies/${id}`)],
  ['switched off', (id: number) => here.admin.send('PUT', `/api/system/copies/${id}`, { enabled: false })],
] as const

/** Alerts of the rule about backups. */
async function firing(): Promise<string[]> {
  await evaluateRules({ ...here.app.ports, startedAt: here.app.clock.now }, async () => true)
  const { alerts } = Object(await (await here.admin.send('GET', '/api/alerts?state=firing')).json())
  return alerts.map(({ what }: { what: string }) => what)
}

describe.each(KINDS)('to %s', (kind) => {
  test('a backup is copied, encrypted for whom age decrypts, and counts once it was checked', async () => {
    const name = await here.backUp()
    const probe = await here.admin.send('POST', '/api/system/copies/test', { kind, settings: settingsOf(kind) })
    expect(await probe.json()).toEqual({ problem: null, canDelete: true, isSameDisk: false })
    expect((await copiesAt(kind)).size).toBe(0)
    await here.add('elsewhere', kind, settingsOf(kind))
    expect((await here.state()).copies).toEqual([])
    await here.copies.round()
    const { places, copies } = await here.state()
    const file = (await copiesAt(kind)).get(`${name}.tar.gz.age`) ?? Buffer.alloc(0)
    expect(places).toMatchObject([{ problem: null, failures: 0, nextTryAt: null }])
    expect(copies).toMatchObject([{ name, state: 'made', sizeBytes: file.length }])
    expect(readByAge(here.identity, file)).toContain(`${name}/manifest.json`)
    expect(readdirSync(join(here.here.dataDir, 'outgoing-copies'))).toEqual([])
    // Nothing that is a secret is anywhere but sealed.
    const seen = [JSON.stringify(await here.state()), here.logged.join(), JSON.stringify(auditRows(here.app))].join()
    for (const secret of [SECRET_KEY, DAV_PASSWORD, 'AGE-SECRET-KEY']) expect(seen).not.toContain(secret)
    expect(auditRows(here.app).map(({ action }) => action)).toContain('backup_copied')
    // The next look does nothing.
    const requests = frontOf(kind).seen.length
    await here.copies.round()
    expect(frontOf(kind).seen.length).toBe(requests)
  })

  const isPut = (method: string) => method === 'PUT'
  const FAULTS: readonly (readonly [string, (method: string) => Fault | null, RegExp])[] = [
    ['refuses', () => ({ kind: 'answer', status: 401 }), /refuses the credentials/],
    ['forbids', (method) => (isPut(method) ? { kind: 'answer', status: 403 } : null), /does not permit/],
    ['is full', (method) => (isPut(method) ? { kind: 'answer', status: 507 } : null), /no room left/],
    ['is broken', () => ({ kind: 'answer', status: 500, body: '<html>what nobody may see' }), /busy or broken/],
    ['redirects', () => ({ kind: 'answer', status: 307, headers: { location: 'http://127.0.0.1:9/' } }), /redirects/],
    ['never answers', (method) => (isPut(method) ? { kind: 'stall' } : null), /stopped answering/],
    ['cuts the connection', (method) => (isPut(method) ? { kind: 'cut', after: 100 } : null), /was cut/],
    [
      'has headers without end',
      (method) => (isPut(method) ? { kind: 'answer', status: 200, headers: { 'x-long': 'x'.repeat(40_000) } } : null),
      /not understood/,
    ],
    ['loses its answer', (method) => (isPut(method) ? { kind: 'lose' } : null), /was cut/],
    [
      'has other content',
      (method) => {
        if (kind === 'webdav') return method === 'GET' ? { kind: 'flip' } : null
        return method === 'HEAD' ? { kind: 'header', name: 'etag', value: `"${'0'.repeat(32)}"` } : null
      },
      /other content/,
    ],
    [
      'has another size',
      (method) => {
        if (kind === 'webdav') return method === 'GET' ? { kind: 'answer', status: 200, body: 'half' } : null
        return method === 'HEAD' ? { kind: 'header', name: 'content-length', value: '7' } : null
      },
      /another size/,
    ],
  ]

  test('a place that fails has no copy; an alert says so, and the next try succeeds', async () => {
    const rule = { kind: 'backup', name: 'Backups', destinations: [], afterHours: 8760 }
    await here.admin.send('POST', '/api/alerts/rules', rule)
    await here.add('the shed', kind, settingsOf(kind))
    const front = frontOf(kind)
    for (const [what, fault, why] of FAULTS) {
      here.app.clock.advance(HOUR)
      const name = await here.backUp()
      front.fault = (method, path) => (path.includes('.mesh-copies') ? null : fault(method))
      await here.copies.round()
      const failed = await here.state()
      expect(failed.places, what).toMatchObject([{ problem: expect.stringMatching(why), failures: 1 }])
      expect(failed.copies.find((one) => one.name === name)?.state, what).not.toBe('made')
      // An object appears whole, before it is checked.
      if (kind === 'webdav') expect((await copiesAt(kind)).has(`${name}.tar.gz.age`), what).toBe(false)
      expect(await firing(), what).toEqual([expect.stringContaining('A backup was not copied to the shed')])
      expect(readdirSync(here.here.backups), what).toContain(name)
      // Not before it is due.
      const requests = front.seen.length
      await here.copies.round()
      expect(front.seen.length, what).toBe(requests)
      front.fault = () => null
      here.app.clock.advance(MINUTE)
      await here.copies.round()
      const after = await here.state()
      const file = (await copiesAt(kind)).get(`${name}.tar.gz.age`) ?? Buffer.alloc(0)
      expect(after.places, what).toMatchObject([{ problem: null, failures: 0 }])
      expect(after.copies[0], what).toMatchObject({ name, state: 'made', sizeBytes: file.length })
      expect(readByAge(here.identity, file), what).toContain(`${name}/manifest.json`)
      expect(await firing(), what).toEqual([])
    }
    expect([...(await copiesAt(kind)).keys()].filter((one) => one.endsWith('.unfinished'))).toEqual([])
    expect(here.logged.join()).not.toContain('what nobody may see')
    const audited = auditRows(here.app).filter(({ action }) => action === 'backup_copy_failed')
    expect(audited).toHaveLength(FAULTS.length)
  })

  test('another service is refused where one keeps its copies, and touches none of them', async () => {
    await here.backUp()
    await here.add('elsewhere', kind, settingsOf(kind))
    await here.copies.round()
    const before = await copiesAt(kind)
    const other = await openCopying()
    try {
      const settings = settingsOf(kind)
      const probe = await other.admin.send('POST', '/api/system/copies/test', { kind, settings })
      expect(Object(await probe.json()).problem).toContain('another service')
      const place = { name: 'elsewhere', kind, settings }
      const refused = await other.admin.send('POST', '/api/system/copies', place)
      expect([refused.status, Object(await refused.json()).detail]).toEqual([
        400,
        expect.stringContaining('another service'),
      ])
      // Added while the place does not answer; its backup has the same name.
      frontOf(kind).fault = () => ({ kind: 'answer', status: 503 })
      await other.add('elsewhere', kind, settings)
      frontOf(kind).fault = () => null
      await other.backUp()
      await other.copies.round()
      expect((await other.state()).places).toMatchObject([{ problem: expect.stringContaining('another service') }])
      expect(await copiesAt(kind)).toEqual(before)
    } finally {
      await other.close()
    }
  })

  test.each(CHANGES)(
    'a place that is %s while it gets a copy gets no more of it, and that is no failure',
    async (how, change) => {
      const name = await here.backUp()
      const id = await here.add('elsewhere', kind, settingsOf(kind))
      const front = frontOf(kind)
      const changed: Promise<Response>[] = []
      front.fault = (method, path) => {
        if (!isPut(method) || !path.includes(name)) return null
        changed.push(change(id))
        return { kind: 'stall' }
      }
      await here.copies.round()
      expect((await Promise.all(changed)).map(({ ok }) => ok)).toEqual([true])
      expect(here.logged.filter((line) => /"level":"(?:error|warn)"/.test(line))).toEqual([])
      expect(auditRows(here.app).map(({ action }) => action)).not.toContain('backup_copy_failed')
      front.fault = () => null
      await here.copies.round()
      expect((await copiesAt(kind)).size).toBe(0)
      const { places } = await here.state()
      expect(places.map(({ problem, failures }) => [problem, failures])).toEqual(how === 'removed' ? [] : [[null, 0]])
      if (how === 'removed') return
      const probe = await here.admin.send('POST', '/api/system/copies/test', { kind, settings: settingsOf(kind) })
      expect(await probe.json()).toMatchObject({ problem: null })
      await here.admin.send('PUT', `/api/system/copies/${id}`, { enabled: true })
      await here.copies.round()
      expect((await here.state()).copies).toMatchObject([{ name, state: 'made' }])
    },
  )

  test('a key that is exchanged while one place gets its copy holds for the next', async () => {
    await here.backUp()
    await here.add('first', kind, settingsOf(kind))
    const second = kind === 's3' ? 'webdav' : 's3'
    await here.add('second', second, settingsOf(second))
    const other = makeKey(here.here.dataDir)
    const front = frontOf(kind)
    let exchanged: Promise<Response> | null = null
    front.fault = (method, path) => {
      if (!isPut(method) || !path.includes('.tar.gz.age')) return null
      const recipients = [{ recipient: other.recipient, name: 'the new safe' }]
      exchanged ??= here.admin.send('PUT', '/api/system/copies', { recipients })
      return null
    }
    await here.copies.round()
    expect((await here.state()).copies.map(({ state }) => state)).toEqual(['made', 'made'])
    const [[, ofFirst] = []] = await copiesAt(kind)
    const [[, ofSecond] = []] = await copiesAt(second)
    expect(readByAge(here.identity, ofFirst ?? Buffer.alloc(0)).length).toBeGreaterThan(1)
    expect(readByAge(other.identity, ofSecond ?? Buffer.alloc(0)).length).toBeGreaterThan(1)
  })

  test('old copies are deleted by the rule of backups, and lost ones are named', async () => {
    await here.add('elsewhere', kind, settingsOf(kind))
    const names: string[] = []
    const day = async (backup: 'manual' | 'scheduled') => {
      here.app.clock.advance(24 * HOUR)
      names.push(await here.backUp(backup))
      await here.copies.round()
    }
    await day('manual')
    for (let n = 0; n < 9; n++) await day('scheduled')
    const kept = [names[0], ...names.slice(-7)].map((name) => `${name}.tar.gz.age`)
    expect([...(await copiesAt(kind)).keys()].toSorted()).toEqual(kept)
    // What was deleted stays deleted, although the backup is still here.
    await here.copies.round()
    expect([...(await copiesAt(kind)).keys()].toSorted()).toEqual(kept)
    const deleted = auditRows(here.app).filter(({ action }) => action === 'backup_deleted')
    expect(deleted.map(({ details }) => details)).toEqual(
      names.slice(1, 3).map((name) => ({ name, place: 'elsewhere', reason: 'retention' })),
    )
    // Somebody deletes one there: the next round says so.
    const target = readTarget(kind, settingsOf(kind), null)
    await placeOpener({ wait: async () => {}, dataDir: null })(target).remove(kept[5] ?? '')
    await day('scheduled')
    const missing = (await here.state()).copies.filter(({ state }) => state === 'missing')
    expect(missing.map(({ name }) => `${name}.tar.gz.age`)).toEqual([kept[5]])
    expect((await copiesAt(kind)).size).toBe(8)
  })
})

test.each(CHANGES)('a place that is %s while it is asked whose it is gets nothing', async (how, change) => {
  await here.close()
  const timings = { stallMs: 2000, answerMs: 2000 }
  here = await openCopying({ places: { wait: async () => {}, timings, multipartBytes: 500 }, partSize: 500 })
  await here.backUp()
  const id = await here.add('elsewhere', 's3', settingsOf('s3'))
  const isPart = (method: string, path: string) => method === 'PUT' && path.includes('uploadId=')
  s3.front.fault = (method, path) => (isPart(method, path) ? { kind: 'answer', status: 403 } : null)
  await here.copies.round()
  const uploads = (method: string) =>
    s3.front.seen.flatMap((line) => (line.startsWith(method) ? (/uploadId=([^&]+)/.exec(line)?.[1] ?? []) : []))
  expect([uploads('PUT').length, uploads('DELETE').length]).toEqual([1, 0])
  const changed: Promise<Response>[] = []
  s3.front.fault = (_method, path) => {
    if (!path.includes('.mesh-copies')) return null
    changed.push(change(id))
    return { kind: 'stall' }
  }
  here.app.clock.advance(MINUTE)
  await here.copies.round()
  expect((await Promise.all(changed)).map(({ ok }) => ok)).toEqual([true])
  expect(auditRows(here.app).filter(({ action }) => action === 'backup_copy_failed')).toHaveLength(1)
  // What the attempt before has left there goes with a place that was removed.
  expect(uploads('DELETE')).toEqual(how === 'removed' ? uploads('PUT') : [])
})

test.each(CHANGES)('a place that is %s while its archive is written does not wait for that', async (_how, change) => {
  await here.close()
  const changed: Promise<Response>[] = []
  here = await openCopying({
    encrypt: async (_job, signal) => {
      changed.push(change(id))
      await once(signal, 'abort')
      throw new Error('ended')
    },
  })
  const name = await here.backUp()
  const id = await here.add('elsewhere', 's3', settingsOf('s3'))
  await here.copies.round()
  expect((await Promise.all(changed)).map(({ ok }) => ok)).toEqual([true])
  expect(auditRows(here.app).map(({ action }) => action)).not.toContain('backup_copy_failed')
  expect(s3.front.seen.filter((line) => line.includes(name))).toEqual([])
})

test('a place that permits no deleting gets each copy, and says that old ones stay', async () => {
  const settings = settingsOf('s3')
  const noDeleting = (method: string): Fault | null => (method === 'DELETE' ? { kind: 'answer', status: 403 } : null)
  s3.front.fault = noDeleting
  const probe = await here.admin.send('POST', '/api/system/copies/test', { kind: 's3', settings })
  expect(await probe.json()).toMatchObject({ problem: null, canDelete: false })
  await here.add('locked', 's3', settings)
  // What is left of the first attempt cannot be removed.
  s3.front.fault = (method) => noDeleting(method) ?? (method === 'HEAD' ? { kind: 'answer', status: 404 } : null)
  await here.backUp()
  await here.copies.round()
  expect((await here.state()).places).toMatchObject([{ failures: 1, problem: 'The file is not at the place' }])
  s3.front.fault = noDeleting
  for (let day = 0; day < 8; day++) {
    here.app.clock.advance(24 * HOUR)
    await here.backUp('scheduled')
    await here.copies.round()
  }
  const { places, copies } = await here.state()
  expect(copies.filter(({ state }) => state === 'made')).toHaveLength(9)
  expect(places).toMatchObject([{ failures: 0, problem: 'The place does not permit this with these credentials' }])
})

test('a list that is not whole loses no copy, and a copy that is there again counts again', async () => {
  await here.add('elsewhere', 's3', settingsOf('s3'))
  const name = await here.backUp()
  await here.copies.round()
  const listing = (inside: string) => (_method: string, path: string) =>
    path.includes('list-type=2')
      ? ({ kind: 'answer', status: 200, body: `<ListBucketResult>${inside}</ListBucketResult>` } as const)
      : null
  const next = async () => {
    here.app.clock.advance(HOUR)
    await here.backUp()
    await here.copies.round()
    const { places, copies } = await here.state()
    return [copies.find((one) => one.name === name)?.state, places[0]?.problem]
  }
  s3.front.fault = listing('<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>')
  expect(await next()).toEqual(['made', expect.stringContaining('too many files')])
  s3.front.fault = listing('<IsTruncated>true</IsTruncated>')
  expect(await next()).toEqual(['made', expect.stringContaining('not understood')])
  s3.front.fault = listing('<IsTruncated>false</IsTruncated>')
  expect(await next()).toEqual(['missing', null])
  // A name that leads elsewhere is no copy, and neither are a million others.
  const names = ['../../', '..%2F', 'x/'].map((path) => `${path}${name}.tar.gz.age`)
  const others = names.map((one) => `<Contents><Key>${one}</Key><Size>7</Size></Contents>`)
  s3.front.fault = listing(`${others.join('')}<IsTruncated>false</IsTruncated>`)
  expect(await next()).toEqual(['missing', null])
  s3.front.fault = () => null
  expect(await next()).toEqual(['made', null])
})

test('a folder with a million names is no failure of reading, and loses no copy', async () => {
  await here.add('elsewhere', 'webdav', settingsOf('webdav'))
  const name = await here.backUp()
  await here.copies.round()
  const entry = '<response><href>/a</href><getcontentlength>1</getcontentlength></response>'
  dav.front.fault = (method) =>
    method === 'PROPFIND' ? { kind: 'answer', status: 207, body: `<multistatus>${entry.repeat(40_000)}` } : null
  here.app.clock.advance(HOUR)
  await here.backUp()
  await here.copies.round()
  const { places, copies } = await here.state()
  expect(places).toMatchObject([{ failures: 0, problem: expect.stringContaining('too many files') }])
  expect(copies.map(({ state }) => state)).toEqual(['made', 'made'])
  expect(copies.map((one) => one.name)).toContain(name)
})

test('a disk that gets full while a backup is encrypted leaves nothing there, and the next try succeeds', async () => {
  await here.close()
  let room = 2000
  const files: Files = {
    ...diskFiles,
    write(fd, bytes) {
      room -= bytes.length
      if (room < 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      diskFiles.write(fd, bytes)
    },
  }
  here = await openCopying({ encrypt: (job) => encryptBackup(job, files) })
  await here.add('elsewhere', 's3', settingsOf('s3'))
  await here.backUp()
  await here.copies.round()
  expect((await here.state()).places).toMatchObject([{ problem: expect.stringContaining('no room for the encrypted') }])
  expect(readdirSync(join(here.here.dataDir, 'outgoing-copies'))).toEqual([])
  room = Infinity
  here.app.clock.advance(MINUTE)
  await here.copies.round()
  expect((await here.state()).copies).toMatchObject([{ state: 'made' }])
})
