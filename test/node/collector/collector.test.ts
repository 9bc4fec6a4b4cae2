import type { Heard } from '../../../src/app/mesh/heard/heard.ts'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLog } from '../../../src/app/base/log.ts'
import { type CollectorFilter, createCollectorFilter } from '../../../src/app/mesh/collector/filter.ts'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import { type SqliteStore } from '../../../src/node/database.ts'
import { type NodeCollector, startCollector } from '../../../src/node/collector/collector.ts'
import { START } from '../../support/app.ts'
import { type CollectorTarget, startCollectorTarget } from '../../support/radio/collector-target.ts'
import { item } from '../../support/mesh/delivery.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import {
  FAR,
  heard,
  LOCAL,
  myInfo,
  nodeInfo,
  packet,
  position,
  RADIO,
  telemetry,
  text,
  user,
} from '../../support/mesh/mesh.ts'
import { fromRadio, type FromRadioVariant } from '../../support/radio/device.ts'
import { until } from '../../support/radio/service.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

const TOKEN = `mm_${'t'.repeat(43)}`

let store: SqliteStore
let clock: ReturnType<typeof createManualClock>
let target: CollectorTarget
let collector: NodeCollector
let logged: string[]

beforeEach(async () => {
  store = openMemoryStore()
  clock = createManualClock(START)
  target = await startCollectorTarget()
  logged = []
  collector = start()
})
afterEach(async () => {
  await collector.close()
  await target.stop()
  store.close()
  expect(logged.join('\n')).not.toContain(TOKEN)
})

function start(options: { maxWaiting?: number; name?: string; filter?: CollectorFilter } = {}): NodeCollector {
  const { name = null, ...more } = options
  const log = createLog({ level: 'debug', format: 'json', now: clock.now, write: (line) => logged.push(line) })
  return startCollector({
    store,
    log,
    clock,
    random: () => 0.5,
    target: { url: target.url, token: TOKEN, name },
    ...more,
  })
}

async function restart(options: Parameters<typeof start>[0] = {}): Promise<void> {
  await collector.close()
  collector = start(options)
}

/** Texts that a radio heard, one packet each. */
async function hear(words: readonly string[], source = 'radio-1'): Promise<string[]> {
  return hearPackets(
    words.map((word) => packet(text(word))),
    { kind: 'tcp', name: source },
  )
}

async function hearPackets(variants: readonly FromRadioVariant[], source: Heard['source'] = RADIO): Promise<string[]> {
  const batch = variants.map((variant) => ({ ...heard(variant, { at: clock.now(), source }), raw: fromRadio(variant) }))
  await createIngest(store, { collector }).store(batch)
  return variants.map(item)
}

const outbox = () => store.sqlite.prepare('select count(*) from collector_outbox').pluck().get()
const sent = () => target.deliveries.map(({ packets }) => packets.map(({ data }) => data))
const untilEmpty = () => until(() => expect([outbox(), collector.info().state]).toStrictEqual([0, 'idle']))
const untilState = (state: string) => until(() => expect(collector.info().state).toBe(state))

describe('a delivery', () => {
  it('contains what was heard in a second, in order, and leaves the outbox when it is confirmed', async () => {
    const first = await hear(['one', 'two'])
    clock.advance(999)
    const second = await hear(['three'])
    expect([target.deliveries, outbox(), collector.info().waiting]).toStrictEqual([[], 3, 3])
    clock.advance(1)
    await untilEmpty()
    expect(sent()).toStrictEqual([[...first, ...second]])
    expect(target.deliveries[0]?.source).toBe('radio-1')
    expect(target.deliveries[0]?.packets[0]).toMatchObject({ receivedAt: START, replayed: false })
    expect(target.tokens).toStrictEqual([`Bearer ${TOKEN}`])
    expect(collector.info()).toStrictEqual({
      target: new URL(target.url).host,
      state: 'idle',
      waiting: 0,
      lastDeliveredAt: clock.now(),
      delivered: 3,
      dropped: 0,
      filtered: 0,
      reason: null,
    })
  })

  it('is from one source and has at most 500 items', async () => {
    await restart({ name: 'hill' })
    await hear(['a'], 'radio-1')
    await hear(
      Array.from({ length: 600 }, (_, n) => `b${n}`),
      'radio-2',
    )
    await hear(['c'], 'radio-1')
    clock.advance(1000)
    await untilEmpty()
    const sizes = target.deliveries.map(({ source, packets }) => [source, packets.length])
    expect(sizes).toStrictEqual([
      ['hill/radio-1', 2],
      ['hill/radio-2', 500],
      ['hill/radio-2', 100],
    ])
  })

  it('excludes everything that may contain secrets', async () => {
    const event = heard(packet(text('x')))
    await createIngest(store, { collector }).store([{ ...event, raw: null }])
    expect([outbox(), collector.info().waiting]).toStrictEqual([0, 0])
  })

  it('of an earlier process continues', async () => {
    const items = await hear(['left'])
    await restart()
    await untilEmpty()
    expect(sent()).toStrictEqual([items])
    expect(collector.info()).toMatchObject({ delivered: 1 })
  })

  it('is sent again until it is confirmed', async () => {
    target.answer = () => 'hang'
    const items = await hear(['again'])
    clock.advance(1000)
    await until(() => expect(target.deliveries).toHaveLength(1))
    const closed = collector.close()
    clock.advance(3000)
    await closed
    expect(outbox()).toBe(1)
    target.answer = null
    collector = start()
    await untilEmpty()
    expect(sent()).toStrictEqual([items, items])
  })
})

describe('a failing target', () => {
  it('is retried at growing intervals, and gets everything in order', async () => {
    const items = await hear(['one'])
    target.answer = () => ({ status: 503 })
    clock.advance(1000)
    for (const pauseMs of [1000, 2000, 4000]) {
      await untilState('waiting')
      const tries = target.deliveries.length
      clock.advance(pauseMs - 1)
      expect(target.deliveries).toHaveLength(tries)
      clock.advance(1)
      await until(() =>
        expect([target.deliveries.length, collector.info().state]).toStrictEqual([tries + 1, 'waiting']),
      )
    }
    items.push(...(await hear(['two'])))
    expect(collector.info()).toMatchObject({
      waiting: 2,
      reason: 'the target reports an error (503)',
      lastDeliveredAt: null,
    })
    target.answer = null
    clock.advance(8000)
    await untilEmpty()
    expect(sent().at(-1)).toStrictEqual(items)
    const told = logged.filter((line) => /cannot deliver|collector delivers/.test(line))
    expect(told).toHaveLength(2)
  })

  it.each([
    ['a page of another site', { status: 200, body: '<html>Welcome to our hotel</html>' }, 'waiting'],
    ['an answer for other items', { status: 200, body: '{"accepted":7,"rejected":[]}' }, 'waiting'],
    ['an endless answer', { status: 200, body: ' '.repeat(300_000) }, 'waiting'],
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 'refused'],
    ['a token it does not know', { status: 401 }, 'refused'],
    ['a token without the scope', { status: 403 }, 'refused'],
    ['a source name in use', { status: 409 }, 'refused'],
    ['too many sources', { status: 409, body: '{"code":"too_many_sources"}' }, 'refused'],
    ['no such route', { status: 404 }, 'refused'],
  ])('loses nothing: %s', async (_, answer, state) => {
    target.answer = () => answer
    await hear(['kept'])
    clock.advance(1000)
    await untilState(state)
    expect([outbox(), collector.info().waiting]).toStrictEqual([1, 1])
    expect(collector.info().reason).toMatch(/target|token/)
    target.answer = null
    clock.advance(state === 'refused' ? 300_000 : 1000)
    await untilEmpty()
    expect(target.deliveries).toHaveLength(2)
  })

  it('gets the pause that it asks for', async () => {
    target.answer = () => ({ status: 429, headers: { 'retry-after': '90' } })
    await hear(['x'])
    clock.advance(1000)
    await untilState('waiting')
    clock.advance(89_999)
    expect(target.deliveries).toHaveLength(1)
    clock.advance(1)
    await until(() => expect(target.deliveries).toHaveLength(2))
  })

  it('loses nothing while it is down', async () => {
    await target.stop()
    await hear(['x'])
    clock.advance(1000)
    await untilState('waiting')
    expect(collector.info().reason).toMatch(/^the target cannot be reached \(ECONNREFUSED\)$/)
    target = await startCollectorTarget()
    await restart()
    await untilEmpty()
    expect(target.deliveries).toHaveLength(1)
  })
})

describe('items that the target does not accept', () => {
  it('a delivery that repeatedly breaks the target is halved too', async () => {
    target.answer = ({ packets }) => (packets.length > 100 ? { status: 503 } : null)
    await hear(Array.from({ length: 300 }, (_, n) => `${n}`))
    await until(() => {
      clock.advance(1000)
      expect(outbox()).toBe(0)
    })
    expect(target.deliveries.slice(0, 5).map(({ packets }) => packets.length)).toStrictEqual([300, 300, 300, 150, 75])
  })

  it('a delivery that is too large is halved', async () => {
    target.answer = ({ packets }) => (packets.length > 2 ? { status: 413 } : null)
    const items = await hear(['1', '2', '3', '4', '5', '6', '7'])
    clock.advance(1000)
    await untilEmpty()
    expect(
      new Set(
        sent()
          .filter((each) => each.length <= 2)
          .flat(),
      ),
    ).toStrictEqual(new Set(items))
    expect(collector.info()).toMatchObject({ delivered: 7, dropped: 0 })
  })

  it('one item is given up when others are accepted', async () => {
    const items = await hear(['1', '2', 'poison', '4', '5'])
    const poison = items[2]
    target.answer = ({ packets }) => (packets.some(({ data }) => data === poison) ? { status: 400 } : null)
    clock.advance(1000)
    await untilEmpty()
    expect(collector.info()).toMatchObject({ delivered: 4, dropped: 1 })
    expect(logged.some((line) => line.includes('does not understand them'))).toBe(true)
  })

  it('many items in a row are given up when a newer one is accepted', async () => {
    const items = await hear(Array.from({ length: 40 }, (_, n) => `${n}`))
    const poison = new Set(items.slice(0, 25))
    target.answer = ({ packets }) => (packets.some(({ data }) => poison.has(data)) ? { status: 400 } : null)
    clock.advance(1000)
    await untilEmpty()
    expect(collector.info()).toMatchObject({ delivered: 15, dropped: 25 })
  })

  it('everything is kept when nothing is accepted', async () => {
    target.answer = () => ({ status: 400 })
    await hear(Array.from({ length: 30 }, (_, n) => `${n}`))
    clock.advance(1000)
    await untilState('refused')
    expect([outbox(), collector.info().dropped]).toStrictEqual([30, 0])
    target.answer = null
    clock.advance(300_000)
    await untilEmpty()
    expect(collector.info()).toMatchObject({ delivered: 30, dropped: 0 })
  })

  it('individually rejected items are not resent, except while the clock of this machine is ahead', async () => {
    const rejected = [
      { index: 0, reason: 'not_storable' },
      { index: 2, reason: 'received_in_future' },
    ]
    target.answer = () => ({ status: 200, body: JSON.stringify({ accepted: 1, duplicates: 0, rejected }) })
    const items = await hear(['bad', 'good', 'of tomorrow'])
    clock.advance(1000)
    await untilState('waiting')
    expect([outbox(), collector.info()]).toMatchObject([
      1,
      {
        reason: 'the clock of this machine is ahead of that of the target',
        waiting: 1,
        delivered: 1,
        dropped: 1,
      },
    ])
    expect(logged.join('\n')).toContain('the target rejects them: not_storable')
    target.answer = null
    clock.advance(1000)
    await untilEmpty()
    expect(sent().at(-1)).toStrictEqual(items.slice(2))
  })

  it('items are sent without a time if this clock was ahead and has been corrected', async () => {
    const ahead = heard(packet(text('of tomorrow')), { at: START + 86_400_000 })
    const raw = fromRadio(packet(text('of tomorrow')))
    await createIngest(store, { collector }).store([{ ...ahead, raw }])
    await hear(['of today'])
    clock.advance(1000)
    await untilEmpty()
    const [delivery] = target.deliveries
    expect(delivery?.packets.map((each) => each.receivedAt)).toStrictEqual([undefined, START])
  })

  it('the oldest are dropped when too many wait, or for too long', async () => {
    await restart({ maxWaiting: 50 })
    target.answer = () => ({ status: 503 })
    const many = await hear(Array.from({ length: 60 }, (_, n) => `${n}`))
    clock.advance(1000)
    await untilState('waiting')
    expect([outbox(), collector.info()]).toMatchObject([50, { waiting: 50, dropped: 10 }])
    expect(sent()).toStrictEqual([many.slice(10)])
    clock.advance(3 * 86_400_000)
    await untilState('waiting')
    const late = await hear(['late'])
    clock.advance(4 * 86_400_000 + 300_000)
    await untilState('waiting')
    target.answer = null
    clock.advance(300_000)
    await untilEmpty()
    expect(sent().at(-1)).toStrictEqual(late)
    expect(collector.info()).toMatchObject({ dropped: 60 })
  })
})

describe('a collector that feeds from a public broker', () => {
  const BROKER = { kind: 'mqtt', name: 'mqtt://broker' } as const
  const place = (from = FAR, to?: number) =>
    packet(position({ latitudeI: 515_000_000, longitudeI: 1_000_000 }), { from, ...(to !== undefined && { to }) })
  const power = (from = FAR) =>
    packet(telemetry({ variant: { case: 'deviceMetrics', value: { batteryLevel: 77 } } }), { from })
  const weather = () => packet(telemetry({ variant: { case: 'environmentMetrics', value: { temperature: 7 } } }))
  const who = (from = FAR) => packet(user({ id: '!a0cb0002', longName: 'Far Hill', shortName: 'FAR' }), { from })
  const traceroute = () => packet({ portnum: 70, payload: new Uint8Array(), wantResponse: true })

  /** The items that are delivered of these, in order. */
  async function deliveredOf(variants: readonly FromRadioVariant[], source: Heard['source'] = BROKER) {
    const before = target.deliveries.length
    const items = await hearPackets(variants, source)
    clock.advance(1000)
    await untilEmpty()
    const data = target.deliveries.slice(before).flatMap(({ packets }) => packets.map((each) => each.data))
    return items.map((each) => data.includes(each))
  }

  it('delivers the configured kinds, and counts the others', async () => {
    await restart({ filter: createCollectorFilter({ only: ['messages', 'nodes'], sampleSeconds: 0 }) })
    const all = [packet(text('hello')), place(), power(), who(), traceroute(), nodeInfo({ num: FAR })]
    expect(await deliveredOf(all)).toStrictEqual([true, false, false, true, false, true])
    expect(collector.info()).toMatchObject({ delivered: 3, filtered: 3, dropped: 0 })
  })

  it('delivers one position, node info and telemetry of each kind per sender in an interval', async () => {
    await restart({ filter: createCollectorFilter({ only: [], sampleSeconds: 600 }) })
    const all = () => [place(), place(FAR + 1), power(), weather(), who()]
    const always = () => [packet(text('hello')), traceroute()]
    expect(await deliveredOf([...all(), ...always()])).not.toContain(false)
    clock.advance(590_000)
    expect(await deliveredOf([...all(), ...always(), packet(text('again'))])).toStrictEqual([
      false,
      false,
      false,
      false,
      false,
      true,
      true,
      true,
    ])
    expect(collector.info()).toMatchObject({ filtered: 5 })
    clock.advance(10_000)
    expect(await deliveredOf([...all(), place()])).toStrictEqual([true, true, true, true, true, false])
  })

  it('delivers everything that its own radio sends and receives', async () => {
    await restart({ filter: createCollectorFilter({ only: ['positions'], sampleSeconds: 600 }) })
    const own = [myInfo, nodeInfo({ num: LOCAL }), power(LOCAL), place(LOCAL), place(LOCAL), place(FAR, LOCAL)]
    const others = [nodeInfo({ num: FAR }), power(), place(), place()]
    expect(await deliveredOf([...own, ...others], RADIO)).toStrictEqual([
      ...own.map(() => true),
      false,
      false,
      true,
      false,
    ])
  })

  it('does not count a packet that could not be stored towards an interval', async () => {
    const filter = createCollectorFilter({ only: [], sampleSeconds: 600 })
    await restart({ filter })
    const batch = [{ ...heard(place(), { at: clock.now(), source: BROKER }), raw: new Uint8Array([1]) }]
    const own = new Set<number>()
    expect(filter(batch, own).passed).toHaveLength(1)
    const again = filter(batch, own)
    expect(again.passed).toHaveLength(1)
    again.commit()
    expect(filter(batch, own)).toMatchObject({ passed: [], filtered: 1 })
  })
})
