import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { placeAddress } from '../../../src/shared/copies.ts'
import { targetOf } from '../../../src/node/backup/copies/cli.ts'
import { readTarget } from '../../../src/app/system/copies/settings.ts'
import { contentOf, makeDataDir, tryRestore } from '../../support/backup/backup.ts'
import { buildCli, runCli } from '../../support/built/built-service.ts'
import {
  type CopyingService,
  davSettings,
  makeKey,
  openCopying,
  s3Settings,
  SESSION_SECRET,
} from '../../support/copies/service.ts'
import { ACCESS_KEY, type S3, SECRET_KEY, startS3 } from '../../support/copies/s3.ts'
import { onTerminal } from '../../support/copies/terminal.ts'
import { DAV_PASSWORD, DAV_USER, startWebDav, type WebDav } from '../../support/copies/webdav.ts'

let cli: string
let s3: S3
let dav: WebDav
let here: CopyingService
let there: ReturnType<typeof makeDataDir>
let name: string
let disk: string

beforeAll(async () => {
  cli = buildCli()
  s3 = await startS3()
  dav = await startWebDav()
  here = await openCopying()
  there = makeDataDir()
  disk = join(there.dataDir, 'disk')
  mkdirSync(disk)
  await here.add('bucket', 's3', s3Settings(s3.front.url))
  await here.add('cloud', 'webdav', davSettings(dav.front.url))
  await here.add('disk', 'folder', { path: disk })
  name = await here.backUp()
  await here.copies.round()
})
afterAll(async () => {
  await here.close()
  await Promise.all([s3.close(), dav.close()])
  there.remove()
})

const PLACES = {
  s3: () => ({
    COPIES_PLACE: placeAddress('s3', { pathStyle: true, ...s3Settings(s3.front.url) }),
    COPIES_USER: ACCESS_KEY,
    COPIES_PASSWORD: SECRET_KEY,
  }),
  webdav: () => ({
    COPIES_PLACE: placeAddress('webdav', davSettings(dav.front.url)),
    COPIES_USER: DAV_USER,
    COPIES_PASSWORD: DAV_PASSWORD,
  }),
  folder: () => ({ COPIES_PLACE: placeAddress('folder', { path: disk }) }),
}

test.each(['s3', 'webdav', 'folder'] as const)(
  'the drill from %s: list, fetch, restore on another machine',
  async (kind) => {
    const dataDir = join(there.dataDir, kind)
    const env: Record<string, string> = { DATA_DIR: dataDir, ...PLACES[kind]() }
    const listed = await runCli(cli, ['copies', 'list'], env)
    expect([listed.code, listed.err]).toEqual([0, ''])
    expect(listed.out).toMatch(new RegExp(String.raw`^${name} +\d+ bytes\n$`))
    const fetched = await runCli(cli, ['copies', 'fetch', 'latest', '--identity', here.identity], env)
    expect([fetched.code, fetched.err]).toEqual([0, ''])
    expect(fetched.out).toContain(`RESTORE_FROM_BACKUP=${name}`)
    const restored = await tryRestore(dataDir, name, { database: join(dataDir, 'mesh.db'), secrets: [SESSION_SECRET] })
    expect(restored.at(-1)).toContain('Restore completed')
    const content = contentOf(join(dataDir, 'mesh.db'))
    expect(content['users']).toEqual(contentOf(here.here.database)['users'])
    // A restored service sends nothing to the places of the other one.
    expect(content['copy_places']).toHaveLength(3)
    for (const row of content['copy_places'] ?? []) expect(Number(Object(row)[5])).toBeGreaterThan(0)
    const again = await runCli(cli, ['copies', 'fetch', name, '--identity', here.identity], env)
    expect([again.code, again.err]).toEqual([1, expect.stringContaining('is already here')])
  },
)

test('another key, a damaged copy and what age made of something else are refused, and leave nothing', async () => {
  const dataDir = join(there.dataDir, 'refused')
  const file = join(disk, `${name}.tar.gz.age`)
  const whole = readFileSync(file)
  const fetch = (identity: string) =>
    runCli(cli, ['copies', 'fetch', name, '--identity', identity], { DATA_DIR: dataDir, COPIES_PLACE: disk })
  const other = makeKey(there.dataDir)
  expect(await fetch(other.identity)).toMatchObject({ code: 1, err: 'This private key does not open the copy\n' })
  writeFileSync(join(there.dataDir, 'public.txt'), `${here.recipient}\n`)
  expect(await fetch(join(there.dataDir, 'public.txt'))).toMatchObject({
    code: 1,
    err: expect.stringContaining('expected AGE-SECRET-KEY'),
  })
  for (const damaged of [whole.subarray(0, whole.length - 40), Buffer.concat([whole.subarray(0, -1), Buffer.of(0)])]) {
    writeFileSync(file, damaged)
    expect(await fetch(here.identity)).toMatchObject({ code: 1, err: expect.stringContaining('damaged') })
  }
  // Anybody with the public key can encrypt: a path that leads out of the folder is not followed.
  const evil = join(there.dataDir, 'evil')
  mkdirSync(join(evil, name), { recursive: true })
  writeFileSync(join(evil, name, 'x'), 'x')
  const tar = execFileSync('tar', ['cz', '-C', evil, '--transform', 's,/x,/../../../evil.json,', '-P', name])
  writeFileSync(file, execFileSync('age', ['-r', here.recipient], { input: tar }))
  expect(await fetch(here.identity)).toMatchObject({ code: 1, err: expect.stringContaining('which no backup has') })
  expect(existsSync(join(dataDir, 'system-backups', name))).toBe(false)
  // What age itself encrypted is read.
  const own = execFileSync('tar', ['cz', '-C', here.here.backups, name], { maxBuffer: 1e8 })
  writeFileSync(
    file,
    execFileSync('age', ['-r', here.recipient, '-r', other.recipient], { input: own, maxBuffer: 1e8 }),
  )
  expect(await fetch(other.identity)).toMatchObject({ code: 0 })
  expect(existsSync(join(dataDir, 'system-backups', name, 'manifest.json'))).toBe(true)
  writeFileSync(file, whole)
})

const PASSPHRASE = 'eleven quiet owls über the ridge'

test.each(['-p', '-pa'])('a private key with a passphrase, as age %s makes it, opens a copy', async (how) => {
  const dataDir = join(there.dataDir, `passphrase${how}`)
  const identity = join(there.dataDir, `key${how}.age`)
  const made = await onTerminal(
    [
      'age',
      ...how
        .slice(1)
        .split('')
        .map((one) => `-${one}`),
      '-o',
      identity,
      here.identity,
    ],
    {},
    [
      ['Enter passphrase', PASSPHRASE],
      ['Confirm passphrase', PASSPHRASE],
    ],
  )
  expect(made.code).toBe(0)
  const env = { DATA_DIR: dataDir, ...PLACES.folder() }
  const fetch = [process.execPath, cli, 'copies', 'fetch', name, '--identity']
  const question = 'Passphrase of the private key: '
  const wrong = await onTerminal([...fetch, identity], env, [[question, 'another']])
  expect(wrong).toEqual({ code: 1, out: expect.stringContaining('This passphrase does not open the private key') })
  expect(existsSync(join(dataDir, 'system-backups', name))).toBe(false)
  // What is typed comes from the terminal, wherever standard input leads.
  const piped = `${[...fetch, '-'].map((word) => `"${word}"`).join(' ')} < "${identity}"`
  const right = await onTerminal(['sh', '-c', piped], env, [[question, PASSPHRASE]])
  expect(right).toEqual({ code: 0, out: expect.stringContaining(`RESTORE_FROM_BACKUP=${name}`) })
  expect(right.out).not.toContain('owls')
  expect(existsSync(join(dataDir, 'system-backups', name, 'manifest.json'))).toBe(true)
})

test('a private key with a passphrase is refused without a terminal, and one that is encrypted for a key', async () => {
  const env = { DATA_DIR: join(there.dataDir, 'untold'), ...PLACES.folder() }
  const fetch = [cli, 'copies', 'fetch', name, '--identity']
  const run = (identity: string) => spawnSync('setsid', ['-w', process.execPath, ...fetch, identity], { env })
  const forKey = join(there.dataDir, 'for-key.age')
  execFileSync('age', ['-r', here.recipient, '-o', forKey, here.identity])
  expect(String(run(forKey).stderr)).toBe(
    'The private key is encrypted for another key: decrypt it first, with age -d\n',
  )
  const untold = run(join(there.dataDir, 'key-pa.age'))
  expect([untold.status, String(untold.stderr)]).toEqual([1, expect.stringContaining('asked for on a terminal')])
})

test('a folder without its disk gets no copy, and one with the data of the service is refused', async () => {
  const inside = await here.admin.send('POST', '/api/system/copies', {
    name: 'inside',
    kind: 'folder',
    settings: { path: here.here.dataDir },
  })
  expect([inside.status, Object(await inside.json()).detail]).toEqual([
    400,
    'This folder is part of the data of the service',
  ])
  rmSync(join(disk, '.mesh-copies'))
  here.app.clock.advance(60_000)
  await here.backUp()
  await here.copies.round()
  const { places } = await here.state()
  expect(places.map(({ problem }) => problem)).toEqual([
    null,
    null,
    'The disk of this folder is not mounted, or is another one',
  ])
  expect(statSync(join(disk, `${name}.tar.gz.age`)).isFile()).toBe(true)
})

test('a private address is used only for a place that an administrator calls own, and http only there', async () => {
  const settings = { ...s3Settings(s3.front.url), ownNetwork: false }
  const add = (more: object) =>
    here.admin.send('POST', '/api/system/copies/test', { kind: 's3', settings: { ...settings, ...more } })
  const plain = await add({})
  expect([plain.status, Object(await plain.json()).detail]).toEqual([400, expect.stringContaining('http is only for')])
  const requests = s3.front.seen.length
  for (const host of ['127.0.0.1', '[::ffff:127.0.0.1]', 'localhost', '2130706433', '169.254.169.254', '0.0.0.0']) {
    const answer = await add({ endpoint: `https://${host}:${new URL(s3.front.url).port}` })
    expect(Object(await answer.json()).problem, host).toContain('private network')
  }
  expect(s3.front.seen.length).toBe(requests)
})

test('the page names a place as the command line reads it', () => {
  for (const [kind, settings] of [
    ['s3', { ...s3Settings('https://s3.example.org/storage'), pathStyle: false }],
    ['webdav', davSettings('https://cloud.example.org')],
    ['folder', { path: '/mnt/usb stick' }],
  ] as const) {
    const [COPIES_USER, COPIES_PASSWORD] = kind === 's3' ? [ACCESS_KEY, SECRET_KEY] : [DAV_USER, DAV_PASSWORD]
    const read = targetOf(placeAddress(kind, settings), { COPIES_USER, COPIES_PASSWORD })
    const wanted = readTarget(kind, settings, null)
    expect(read).toEqual(wanted)
  }
})
