// Memory of the service while it encrypts an archive of 1 GB and sends it to both kinds of server.
import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { readManifest } from '../../src/node/backup/folder/read-manifest.ts'
import { renderManifest } from '../../src/app/system/backup/format/manifest.ts'
import { davSettings, s3Settings } from '../../test/support/copies/service.ts'
import { startS3 } from '../../test/support/copies/s3.ts'
import { startWebDav } from '../../test/support/copies/webdav.ts'
import { memoryMb, PASSWORD, signIn, startService } from '../servers/processes.ts'
import { report } from '../table.ts'

const BYTES = 1_000_000_000
const MOST_MB = 32
/** A service does what is due each minute for the first time then. */
const REST_MS = 65_000
const BLOCK = 8 * 2 ** 20

/** As the image and the unit start the service. */
const ENV = { ADMIN_PASSWORD: PASSWORD }

type Service = Awaited<ReturnType<typeof open>>

async function open(dataDir: string) {
  const service = await startService(dataDir, ENV, { monitored: false })
  const cookie = await signIn(service.port)
  const send = async (method: string, path: string, json?: unknown): Promise<Record<string, unknown>> => {
    const answer = await fetch(`http://127.0.0.1:${service.port}/api/system/${path}`, {
      method,
      headers: { cookie, ...(json !== undefined && { 'content-type': 'application/json' }) },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? {} : JSON.parse(text)
  }
  return { ...service, send }
}

/** Adds a table of noise, which gzip makes no smaller, to a backup. */
function grow(folder: string): void {
  const fd = openSync(join(folder, 'noise.json'), 'wx')
  const block = randomBytes(BLOCK)
  for (let left = BYTES; left > 0; left -= BLOCK) {
    block.writeUInt32LE(left)
    writeSync(fd, block, 0, Math.min(left, BLOCK))
  }
  closeSync(fd)
  const { signature: _signature, sha256: _sha256, ...content } = readManifest(folder)
  const about = { name: 'noise', file: 'noise.json', columns: ['noise'], rows: 1, bytes: BYTES }
  const tables = [...content.tables, { ...about, sha256: '0'.repeat(64), sequence: null }]
  writeFileSync(join(folder, 'manifest.json'), renderManifest({ ...content, tables }, null))
  readManifest(folder)
}

/** Adds a place, and waits until it has the backup. Returns the seconds. */
async function copyTo({ send }: Service, kind: string, settings: object): Promise<number> {
  const begun = performance.now()
  const { place } = Object(await send('POST', 'copies', { name: kind, kind, settings }))
  for (;;) {
    const { places, copies } = Object(await send('GET', 'copies'))
    if (copies.some((one: { state: string }) => one.state === 'made')) break
    if (places[0].problem !== null) throw new Error(places[0].problem)
    await wait(500)
  }
  const seconds = (performance.now() - begun) / 1000
  await send('DELETE', `copies/${place.id}`)
  return seconds
}

async function measure(dataDir: string, kind: string, settings: object): Promise<void> {
  const service = await open(dataDir)
  try {
    await wait(REST_MS)
    // From now on the highest is the highest since now.
    writeFileSync(`/proc/${service.child.pid}/clear_refs`, '5')
    const { now } = memoryMb(service)
    const seconds = await copyTo(service, kind, settings)
    const more = memoryMb(service).most - now
    report(
      `memory of a copy of 1 GB by ${kind === 's3' ? 'S3' : 'WebDAV'}`,
      `${more.toFixed(0)} MB more, took ${seconds.toFixed(0)} s`,
      `≤ ${MOST_MB} MB more`,
      more <= MOST_MB,
    )
  } finally {
    await service.stop()
  }
}

export async function measureCopies(scratch: string): Promise<void> {
  const dataDir = join(scratch, 'copies')
  mkdirSync(dataDir)
  const service = await open(dataDir)
  const recipient = await identityToRecipient(await generateX25519Identity())
  await service.send('PUT', 'copies', { recipients: [{ recipient, name: 'nobody' }] })
  const { backup } = Object(await service.send('POST', 'backup'))
  await service.stop()
  grow(join(dataDir, 'system-backups', backup.name))
  const s3 = await startS3()
  const dav = await startWebDav()
  try {
    await measure(dataDir, 's3', s3Settings(s3.front.url))
    await measure(dataDir, 'webdav', davSettings(dav.front.url))
  } finally {
    await Promise.all([s3.close(), dav.close()])
  }
}
