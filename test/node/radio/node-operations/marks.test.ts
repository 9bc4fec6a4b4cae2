import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, expect, it } from 'vitest'
import { AdminMessageSchema } from '../../../../src/meshtastic/gen/admin_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { openRadio } from '../../../../src/node/radio/radio.ts'
import { createLog } from '../../../../src/app/base/log.ts'
import { parseConfig } from '../../../../src/app/config/config.ts'
import { createTestApp, START } from '../../../support/app.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { openMemoryStore } from '../../../support/memory-store.ts'
import { fromRadio, startRadioDevice } from '../../../support/radio/device.ts'
import { FAR, OWN, until } from '../../../support/radio/service.ts'

const endings: (() => unknown)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

type Marks = { isFavorite?: boolean; isIgnored?: boolean; isMuted?: boolean }

/** A radio that keeps marks as firmware 2.8 does: it confirms every order and follows those that it can. */
async function startKeeper(options: { own?: number; room?: number; known?: readonly number[] } = {}) {
  const { own = OWN, room = 100 } = options
  const memory = new Map<number, Marks>([FAR, ...(options.known ?? [])].map((num) => [num, {}]))
  const orders: string[] = []
  const asked: number[] = []
  const set = (nodeNum: number, field: keyof Marks, value: boolean, word: string) => {
    orders.push(`${word} ${nodeNum.toString(16)}`)
    if (field === 'isIgnored' && value && !memory.has(nodeNum)) memory.set(nodeNum, {})
    const node = memory.get(nodeNum)
    if (node === undefined) return
    const marked = [...memory.values()].filter(({ isFavorite, isIgnored }) => isFavorite === true || isIgnored === true)
    if (value && marked.length >= room) {
      const message = `Can't ${field === 'isFavorite' ? 'favorite' : 'ignore'} 0x${nodeNum.toString(16)}: protected-node limit (${room}) reached`
      device.send(fromRadio({ case: 'clientNotification', value: { level: 30, message } }))
    } else memory.set(nodeNum, { ...node, [field]: value })
  }
  const device = await startRadioDevice({
    handshake(nonce) {
      asked.push(nonce)
      const others = [...memory].map(([num, marks]) => fromRadio({ case: 'nodeInfo', value: { num, ...marks } }))
      const first = [
        fromRadio({ case: 'myInfo', value: { myNodeNum: own } }),
        fromRadio({ case: 'metadata', value: { firmwareVersion: '2.8.0.test', hwModel: 43, role: 2 } }),
        fromRadio({ case: 'channel', value: { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } } }),
      ]
      // Firmware always calls itself a favourite.
      const itself = fromRadio({ case: 'nodeInfo', value: { num: own, isFavorite: true } })
      const complete = fromRadio({ case: 'configCompleteId', value: nonce })
      // With this number, firmware sends the nodes alone.
      return [...(nonce === 69_421 ? [] : first), itself, ...others, complete]
    },
    onPacket({ payloadVariant }) {
      if (payloadVariant.case !== 'decoded' || payloadVariant.value.portnum !== PortNum.ADMIN_APP) return
      const { case: variant, value } = fromBinary(AdminMessageSchema, payloadVariant.value.payload).payloadVariant
      if (variant === 'setFavoriteNode') set(value, 'isFavorite', true, '+fav')
      if (variant === 'removeFavoriteNode') set(value, 'isFavorite', false, '-fav')
      if (variant === 'setIgnoredNode') set(value, 'isIgnored', true, '+ign')
      if (variant === 'removeIgnoredNode') set(value, 'isIgnored', false, '-ign')
      if (variant === 'toggleMutedNode') set(value, 'isMuted', memory.get(value)?.isMuted !== true, '~mute')
    },
  })
  endings.push(() => device.stop())
  return { device, memory, orders, asked }
}

async function startService(...keepers: Awaited<ReturnType<typeof startKeeper>>[]) {
  const clock = createManualClock(START)
  const store = openMemoryStore()
  endings.push(() => store.close())
  const targets = keepers.map(({ device }) => `127.0.0.1:${device.port}`)
  const parsed = parseConfig({ MESHTASTIC_TCP: targets.join(',') })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const log = createLog({
    level: 'error',
    format: 'json',
    now: () => clock.now(),
    write: (line) => expect(line).toBe(''),
  })
  const radio = openRadio({ config: parsed.config, store, log, clock })
  const app = await createTestApp({ store, ports: { radio, now: () => clock.now() } })
  const admin = await app.admin()
  const connected = () =>
    until(() => {
      clock.advance(100)
      expect(radio.links().every(({ state }) => state === 'connected')).toBe(true)
      expect(radio.waiting()).toBe(0)
    })
  const begin = async () => {
    radio.start()
    endings.push(() => radio.close())
    await connected()
  }
  const marks = () =>
    store.sqlite
      .prepare('select node_num n, is_favorite f, is_ignored i from nodes where n <> ? order by 1')
      .raw()
      .all(OWN)
  const put = async (json: object, node = FAR) =>
    expect((await admin.send('PUT', `/api/nodes/${node}`, json)).status).toBe(200)
  const radios = async (node = FAR): Promise<Record<string, unknown>[]> =>
    Object(await (await admin.send('GET', `/api/nodes/${node}/radios`)).json()).radios
  /** Changes that are made while the radio is away. */
  const apart = async (change: () => unknown) => {
    for (const { device } of keepers) device.kick()
    await until(() => expect(radio.links().every(({ state }) => state !== 'connected')).toBe(true))
    await change()
    clock.advance(5000)
    await connected()
  }
  return { clock, store, begin, marks, put, radios, apart, connected }
}

it('a favourite of the page is one of the radio, confirmed by reading it back, and the same for the end of it', async () => {
  const keeper = await startKeeper()
  const { clock, begin, put, radios } = await startService(keeper)
  await begin()
  await put({ isFavorite: true })
  await until(() => expect(keeper.orders).toStrictEqual(['+fav a0cb0002']))
  expect(await radios()).toMatchObject([{ isConnected: true, isFavorite: false, problem: 'waiting' }])
  clock.advance(3000)
  await until(async () => {
    clock.advance(100)
    expect(await radios()).toMatchObject([{ isFavorite: true, problem: null }])
  })
  expect(keeper.asked.at(-1)).toBe(69_421)
  await put({ isFavorite: false, isIgnored: true })
  await until(() => expect(keeper.orders.slice(1)).toStrictEqual(['-fav a0cb0002', '+ign a0cb0002']))
  clock.advance(3000)
  await until(async () => {
    clock.advance(100)
    expect(await radios()).toMatchObject([{ isFavorite: false, isIgnored: true, problem: null }])
  })
  expect(keeper.memory.get(FAR)).toStrictEqual({ isFavorite: false, isIgnored: true })
})

it('a muted node is turned over once for each change, however often it is compared, and read from the radio as well', async () => {
  const keeper = await startKeeper()
  const { clock, store, begin, put, apart, radios } = await startService(keeper)
  const isMuted = () => store.sqlite.prepare('select is_muted from nodes where node_num = ?').pluck().get(FAR)
  await begin()
  for (const [times, is] of [true, false, true].entries()) {
    await put({ isMuted: is })
    await put({ notes: `changed ${times}` })
    await until(async () => {
      clock.advance(100)
      expect(await radios()).toMatchObject([{ isMuted: is, problem: null }])
    })
    expect(keeper.orders).toStrictEqual(Array(times + 1).fill('~mute a0cb0002'))
    expect(keeper.memory.get(FAR)?.isMuted).toBe(is)
  }
  await apart(() => keeper.memory.set(FAR, { isMuted: false }))
  await until(() => expect(isMuted()).toBe(0))
  await apart(() => put({ isMuted: true }))
  await until(() => expect(keeper.orders).toHaveLength(4))
  expect([keeper.memory.get(FAR), isMuted()]).toStrictEqual([{ isMuted: true }, 1])
})

it('at first contact each side gets the marks of the other', async () => {
  const keeper = await startKeeper({ known: [0xa0cb0003] })
  keeper.memory.set(0xa0cb0003, { isFavorite: true })
  const { store, begin, marks } = await startService(keeper)
  store.sqlite.exec(`insert into nodes (node_num, first_heard, is_favorite) values (${FAR}, 1, 1), (2697658371, 1, 0)`)
  await begin()
  await until(() => expect(keeper.orders).toStrictEqual(['+fav a0cb0002']))
  await until(() =>
    expect(marks()).toStrictEqual([
      [FAR, 1, 0],
      [0xa0cb0003, 1, 0],
    ]),
  )
})

it('what changed on one side while they were apart is changed on the other, in both directions', async () => {
  const keeper = await startKeeper({ known: [0xa0cb0003] })
  const { clock, begin, put, marks, apart, radios } = await startService(keeper)
  await begin()
  await put({ isFavorite: true })
  await until(() => expect(keeper.orders).toHaveLength(1))
  clock.advance(3000)
  await until(async () => {
    clock.advance(100)
    expect(await radios()).toMatchObject([{ isFavorite: true }])
  })
  // The radio's owner takes one back and adds one; the page ignores one.
  await apart(async () => {
    keeper.memory.set(FAR, { isFavorite: false })
    keeper.memory.set(0xa0cb0003, { isFavorite: true })
    await put({ isIgnored: true }, 0xa0cb0003)
  })
  await until(() =>
    expect(marks()).toStrictEqual([
      [FAR, 0, 0],
      [0xa0cb0003, 1, 1],
    ]),
  )
  await until(() => expect(keeper.orders.slice(1)).toStrictEqual(['+ign a0cb0003']))
})

it('a radio that lost its memory gets its marks back instead of taking them from here', async () => {
  const keeper = await startKeeper({ known: [0xa0cb0003] })
  keeper.memory.set(FAR, { isFavorite: true })
  keeper.memory.set(0xa0cb0003, { isFavorite: true })
  const { begin, marks, apart, radios } = await startService(keeper)
  await begin()
  await until(async () => expect(await radios()).toMatchObject([{ isFavorite: true }]))
  await apart(() => {
    keeper.memory.set(FAR, {})
    keeper.memory.set(0xa0cb0003, {})
  })
  await until(() => expect(keeper.orders.toSorted()).toStrictEqual(['+fav a0cb0002', '+fav a0cb0003']))
  expect(marks()).toStrictEqual([
    [FAR, 1, 0],
    [0xa0cb0003, 1, 0],
  ])
})

it('says why a radio does not take a mark, tries it once a connection, and again when it is asked', async () => {
  const keeper = await startKeeper({ room: 0 })
  const { clock, begin, put, radios, apart } = await startService(keeper)
  await begin()
  await put({ isFavorite: true })
  await until(() => expect(keeper.orders).toHaveLength(1))
  const refused = () =>
    until(async () => {
      clock.advance(100)
      expect(await radios()).toMatchObject([{ isFavorite: false, problem: 'full' }])
    })
  clock.advance(3000)
  await refused()
  for (let minutes = 0; minutes < 10; minutes += 1) clock.advance(60_000)
  expect(keeper.orders).toHaveLength(1)
  await apart(() => {})
  await until(() => expect(keeper.orders).toHaveLength(2))
  clock.advance(3000)
  await refused()
})

it('a favourite that the radio does not know waits until it knows the node', async () => {
  const keeper = await startKeeper()
  keeper.memory.delete(FAR)
  const { store, begin, put, radios, apart } = await startService(keeper)
  await begin()
  store.sqlite.exec(`insert into nodes (node_num, first_heard) values (${FAR}, 1)`)
  await apart(() => put({ isFavorite: true }))
  await until(async () => expect(await radios()).toMatchObject([{ isFavorite: false, problem: 'unknown_node' }]))
  expect(keeper.orders).toStrictEqual([])
  await apart(() => keeper.memory.set(FAR, {}))
  await until(() => expect(keeper.orders).toStrictEqual(['+fav a0cb0002']))
})

it('many marks follow in small groups, and stop where the radio takes none', async () => {
  const known = Array.from({ length: 50 }, (_, index) => 0xb0000000 + index)
  const keeper = await startKeeper({ known, room: 30 })
  const { clock, store, begin } = await startService(keeper)
  const insert = store.sqlite.prepare('insert into nodes (node_num, first_heard, is_favorite) values (?, 1, 1)')
  for (const num of known) insert.run(num)
  await begin()
  await until(() => expect(keeper.orders).toHaveLength(20))
  clock.advance(3000)
  await until(() => {
    clock.advance(100)
    expect(keeper.orders).toHaveLength(40)
  })
  for (let seconds = 0; seconds < 30; seconds += 3) {
    clock.advance(3000)
    await until(() => clock.advance(100))
  }
  expect(keeper.orders.length).toBeLessThanOrEqual(50)
  expect([...keeper.memory.values()].filter(({ isFavorite }) => isFavorite === true)).toHaveLength(30)
})

it('a mark that is set on one radio reaches the other radios', async () => {
  const [one, other] = [await startKeeper(), await startKeeper({ own: 0xa0cb0009 })]
  const { clock, begin, put, apart, radios } = await startService(one, other)
  await begin()
  await apart(() => one.memory.set(FAR, { isFavorite: true }))
  await until(() => expect([one.orders, other.orders]).toStrictEqual([[], ['+fav a0cb0002']]))
  clock.advance(3000)
  await until(async () => {
    clock.advance(100)
    expect((await radios()).map(({ isFavorite, problem }) => [isFavorite, problem])).toStrictEqual([
      [true, null],
      [true, null],
    ])
  })
  await put({ isFavorite: false })
  await until(() => expect([one.orders, other.orders.slice(1)]).toStrictEqual([['-fav a0cb0002'], ['-fav a0cb0002']]))
})

it('of a list without end, the first 5,000 nodes are compared', async () => {
  const last = 0xb0000000 + 5099
  const keeper = await startKeeper({ known: Array.from({ length: 5100 }, (_, at) => 0xb0000000 + at) })
  const { begin, marks, apart } = await startService(keeper)
  await begin()
  await apart(() => {
    for (const nodeNum of [FAR, last]) keeper.memory.set(nodeNum, { isFavorite: true })
  })
  const favourites = () => Array.from(marks(), (row) => Object(row)).filter(([, isFavorite]) => isFavorite === 1)
  await until(() => expect(favourites()).toStrictEqual([[FAR, 1, 0]]))
})
