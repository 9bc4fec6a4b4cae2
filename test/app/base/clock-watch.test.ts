import type { ClockWatch } from '../../../src/app/base/pacing/clock.ts'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { confirmClock, watchClock } from '../../../src/app/base/pacing/clock-watch.ts'
import { deleteOld, keepUp } from '../../../src/app/upkeep/upkeep.ts'
import { type Client, START } from '../../support/app.ts'
import {
  createTestMesh,
  FAR,
  packet,
  position,
  seconds,
  store,
  telemetry,
  type TestMesh,
  text,
} from '../../support/mesh/mesh.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEARS = 3 * 365 * DAY

let mesh: TestMesh
/** Milliseconds since the machine was switched on. */
let passed: number

beforeEach(async () => {
  mesh = await createTestMesh()
  passed = 0
})
afterEach(() => mesh.app.close())

const open = () => {
  const { store: kept, log, now } = mesh.app.ports
  return watchClock({ store: kept, log, now, monotonic: () => passed })
}

/** Advances time and every clock with it. */
const live = (ms: number) => {
  passed += ms
  mesh.app.clock.advance(ms)
}

const hear = async () =>
  store(
    mesh.ingest,
    [
      packet(telemetry({ variant: { case: 'deviceMetrics', value: { voltage: 4 } } })),
      packet(position({ latitudeI: 1, longitudeI: 2 })),
      packet(text('hello')),
    ],
    { at: mesh.app.clock.now },
  )

const TABLES = ['telemetry', 'positions', 'messages', 'packets'] as const
const counts = () => TABLES.map((table) => mesh.count(table))
const retain = async (watch: ClockWatch) => {
  await keepUp(mesh.app.ports, async () => true)
  await deleteOld({ ...mesh.app.ports, now: watch.trusted }, async () => true)
}
const warnings = () => mesh.app.logged.filter((line) => line.includes('"level":"warn"'))

describe('a start three years in the future', () => {
  it('deletes nothing, and says so once', async () => {
    await hear()
    mesh.app.clock.advance(YEARS)
    const watch = await open()
    await retain(watch)
    live(HOUR)
    await watch.keep()
    await retain(watch)
    expect(counts()).toStrictEqual([1, 1, 1, 3])
    expect(watch.state()).toStrictEqual({ state: 'ahead', confirmed: START + HOUR })
    expect(warnings()).toHaveLength(1)
    expect(warnings()[0]).toContain('The clock of this machine is far ahead of what is stored')
  })

  it('deletes nothing at the next start either, whatever was heard meanwhile', async () => {
    await hear()
    mesh.app.clock.advance(YEARS)
    const first = await open()
    await hear()
    live(HOUR)
    await first.keep()
    await hear()
    const second = await open()
    await retain(second)
    expect(counts()).toStrictEqual([3, 3, 3, 9])
    expect(second.state()).toStrictEqual({ state: 'ahead', confirmed: START + HOUR })
  })

  it('continues to delete what has really expired', async () => {
    await hear()
    mesh.app.clock.advance(YEARS)
    const watch = await open()
    live(31 * DAY)
    await retain(watch)
    expect(counts()).toStrictEqual([0, 1, 1, 0])
  })
})

describe('after a pause', () => {
  it('of up to a day the clock is trusted', async () => {
    await hear()
    mesh.app.clock.advance(DAY)
    expect((await open()).state()).toStrictEqual({ state: 'confirmed', confirmed: START + DAY })
  })

  it.each(['a radio', 'an administrator'])('of two months the clock needs confirmation by %s', async (who) => {
    await hear()
    mesh.app.clock.advance(60 * DAY)
    const watch = await open()
    watch.agree('a radio with a wrong clock', START)
    expect(watch.state().state).toBe('ahead')
    if (who === 'a radio') watch.agree(who, START + 60 * DAY - 9 * MINUTE)
    else await confirmClock(mesh.app.store, mesh.app.clock.now)
    await watch.keep()
    expect(watch.state()).toStrictEqual({ state: 'confirmed', confirmed: START + 60 * DAY })
    await retain(watch)
    expect(counts()).toStrictEqual([0, 1, 1, 0])
    live(HOUR)
    await watch.keep()
    expect((await open()).state().state).toBe('confirmed')
  })
})

it('a jump while the service runs has no effect until another clock agrees', async () => {
  await hear()
  const watch = await open()
  live(HOUR)
  await watch.keep()
  mesh.app.clock.advance(YEARS)
  await watch.keep()
  expect(watch.trusted()).toBe(START + HOUR)
  mesh.app.clock.advance(-YEARS)
  expect(watch.state()).toStrictEqual({ state: 'confirmed', confirmed: START + HOUR })
})

it('a clock that is behind deletes less, and is reported', async () => {
  await hear()
  mesh.app.clock.advance(-30 * DAY)
  const watch = await open()
  expect(watch.trusted()).toBe(START - 30 * DAY)
  // This start knew no other time: data from the future do not disprove the clock.
  expect(watch.state().state).toBe('confirmed')
})

it('an empty database raises no doubt about the clock', async () => {
  expect((await open()).state()).toStrictEqual({ state: 'confirmed', confirmed: START })
})

describe('data from a time when the clock was ahead', () => {
  let admin: Client
  let watch: ClockWatch
  const newToken = async (client: Client, expiresInDays: number | null) => {
    const answer = await client.send('POST', '/api/tokens', {
      name: `for ${expiresInDays}`,
      scopes: ['nodes:read'],
      expiresInDays,
    })
    expect(answer.status).toBe(201)
    return Object(await answer.json())
  }
  const tokens = async () => Object(await (await (await mesh.app.admin()).send('GET', '/api/tokens')).json()).tokens

  beforeEach(async () => {
    await hear()
    watch = await open()
    await watch.keep()
    mesh.app.clock.advance(YEARS)
    await watch.keep()
    admin = await mesh.app.admin()
    await newToken(admin, 90)
    await newToken(admin, null)
    await hear()
    mesh.app.clock.advance(MINUTE - YEARS)
    await watch.keep()
    // The write limit treats a use in the future as a use now: it refuses once more, and then allows.
    expect((await mesh.app.client().send('POST', '/api/auth/login', {})).status).toBe(429)
    live(1000)
  })

  it('sessions end when the clock is corrected', async () => {
    expect((await admin.send('GET', '/api/auth/sessions')).status).toBe(401)
  })

  it('tokens keep the lifetime that they were created with', async () => {
    const now = START + MINUTE
    expect(await tokens()).toMatchObject([
      { createdAt: now, expiresAt: null },
      { createdAt: now, expiresAt: now + 90 * DAY },
    ])
  })

  it('nodes count as heard now, and can be heard again', async () => {
    expect(await mesh.node(FAR)).toMatchObject({ lastHeard: START + MINUTE })
    live(HOUR)
    const value = { voltage: 3.5 }
    await store(
      mesh.ingest,
      [packet(telemetry({ time: seconds(START + HOUR), variant: { case: 'deviceMetrics', value } }))],
      {
        at: mesh.app.clock.now,
      },
    )
    expect(await mesh.node(FAR)).toMatchObject({ lastHeard: mesh.app.clock.now, deviceMetrics: { voltage: 3.5 } })
  })

  it('a window of attempts opened then blocks nobody', async () => {
    const { sessions } = mesh.app.ports
    for (let i = 0; i < 5; i++) await sessions.hit('key', HOUR, START + YEARS)
    expect(await sessions.hit('key', HOUR, START)).toStrictEqual({ count: 1, resetAt: START + HOUR })
  })
})

it('health and info report it', async () => {
  await hear()
  mesh.app.clock.advance(YEARS)
  Object.assign(mesh.app.ports, { clockWatch: await open() })
  expect(await (await mesh.app.request('/api/health')).json()).toMatchObject({ status: 'ok', clock: 'ahead' })
  const info = await (await mesh.app.admin()).send('GET', '/api/info')
  expect(await info.json()).toMatchObject({ clock: { state: 'ahead', confirmed: START } })
})
