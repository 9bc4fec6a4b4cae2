import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Built, buildService, runToEnd, type Service, startService } from '../support/built/built-service.ts'
import { item } from '../support/mesh/delivery.ts'
import { packet, text } from '../support/mesh/mesh.ts'
import { canMount, mountSmallDisk, type SmallDisk } from '../support/backup/small-disk.ts'
import { figure } from './figures.ts'

const PASSWORD = 'the first administrator'
const USER_PASSWORD = 'a password for everyone'
const EACH = 100
const SIGN_INS = 5
const json = { 'content-type': 'application/json' }

describe.skipIf(!canMount)('a disk that fills up', () => {
  let built: Built
  let disk: SmallDisk
  let service: Service
  beforeAll(() => {
    built = buildService()
    disk = mountSmallDisk(64)
  })
  afterAll(async () => {
    await service?.stop('SIGKILL')
    disk?.remove()
  })

  const send = async (method: string, path: string, headers: Record<string, string>, body?: unknown) =>
    fetch(`${service.url}/api${path}`, {
      method,
      headers: { ...headers, ...(body !== undefined && json) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })

  const signIn = async (username: string, password: string) => {
    const answer = await send('POST', '/auth/login', {}, { username, password })
    const session = answer.headers.getSetCookie().find((cookie) => cookie.startsWith('mesh_session=')) ?? ''
    return { status: answer.status, cookie: { cookie: session.split(';')[0] ?? '' } }
  }

  const health = async () => {
    const answer = await fetch(`${service.url}/api/health`)
    return { ...Object(await answer.json()), status: answer.status }
  }

  const until = async (condition: () => Promise<boolean>) => {
    for (let tries = 0; !(await condition()); tries++) {
      if (tries === 100) throw new Error('the expected state was not reached')
      await new Promise((resolve) => setTimeout(resolve, 1000))
    }
  }

  test('loses nothing that was acknowledged, and administrators can free space', async () => {
    service = await startService(built, { DATA_DIR: disk.dir, ADMIN_PASSWORD: PASSWORD, LOGIN_MAX_FAILURES: '1000' })
    const admin = await signIn('admin', PASSWORD)
    await send('POST', '/users', admin.cookie, { username: 'ursula', password: USER_PASSWORD })
    const user = await signIn('ursula', USER_PASSWORD)
    const made = await send('POST', '/system/backup', admin.cookie)
    const { backup } = z.object({ backup: z.object({ name: z.string() }) }).parse(await made.json())
    const token = await send('POST', '/tokens', admin.cookie, { name: 'collector', scopes: ['ingest'] })
    const bearer = { authorization: `Bearer ${String(Object(await token.json()).token)}` }

    const acknowledged: string[] = []
    let refused = 0
    const deliverUntilRefused = async (times: number) => {
      for (let tries = 0; tries < 10_000; tries++) {
        if (refused >= times) return
        await deliver()
      }
    }
    const deliver = async () => {
      const words = Array.from({ length: EACH }, (_, index) => `words ${acknowledged.length} ${refused} ${index}`)
      const packets = words.map((each) => ({ data: item(packet(text(each))), receivedAt: Date.now() }))
      const answer = await send('POST', '/ingest', bearer, { source: 'radio', packets })
      if (answer.status === 200) acknowledged.push(...words)
      else expect(Object(await answer.json())).toMatchObject({ status: 503, code: 'database_unavailable' })
      if (answer.status !== 200) refused++
      return answer.status
    }
    for (let before = 0; before < 20; before++) expect(await deliver()).toBe(200)
    disk.fill(3 * 1024 * 1024)
    await deliverUntilRefused(50)
    expect(await health()).toMatchObject({ status: 503, unavailable: 'disk' })
    expect(service.lines.filter((line) => line.includes('"Disk full'))).toHaveLength(1)
    // Other processes on this machine use up the rest.
    disk.fill()

    const left = await send('POST', '/auth/logout', user.cookie)
    expect([left.status, left.headers.getSetCookie()[0]]).toEqual([
      200,
      expect.stringMatching(/^mesh_session=;.*Max-Age=0/),
    ])
    expect((await send('GET', '/auth/sessions', user.cookie)).status).toBe(401)
    const signedIn = []
    for (let i = 0; i < SIGN_INS; i++) signedIn.push((await signIn('admin', PASSWORD)).status)
    expect(signedIn).toEqual(Array.from({ length: SIGN_INS }, () => 200))
    const settings = await send('PUT', '/settings', admin.cookie, { telemetryRetentionDays: 3 })
    const removed = await send('DELETE', `/system/backup/${backup.name}`, admin.cookie)
    expect([settings.status, removed.status]).toEqual([200, 204])
    await deliverUntilRefused(100)

    disk.clear()
    await until(async () => (await health()).status === 200)
    for (let after = 0; after < 20; after++) expect(await deliver()).toBe(200)
    await service.stop('SIGKILL')

    const database = new Database(join(disk.dir, 'mesh.db'))
    const kept = new Set(database.prepare<[], string>('select text from messages').pluck().all())
    database.close()
    const lost = acknowledged.filter((each) => !kept.has(each)).length
    figure('full disk: packets acknowledged', acknowledged.length)
    figure('full disk: of them lost', lost)
    figure('full disk: deliveries refused with 503', refused)
    figure(
      'full disk: sign-ins of an administrator',
      `${signedIn.filter((status) => status === 200).length} of ${SIGN_INS}`,
    )
    expect(lost).toBe(0)
  })

  test('a start without room for a migration says so in one line', async () => {
    const empty = mountSmallDisk(40)
    try {
      empty.fill(128 * 1024)
      const { code, out, err } = await runToEnd(built, { DATA_DIR: empty.dir })
      expect([code, out]).toEqual([1, expect.stringMatching(/"Disk full[^\n]*\n$/)])
      expect(err).toMatch(/^[^\n]*mesh\.db: found a full disk, expected space [^\n]*\n$/)
    } finally {
      empty.remove()
    }
  })
})
