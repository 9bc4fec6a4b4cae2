import { afterEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../../src/app/config/config.ts'
import { type SqliteStore } from '../../../src/node/database.ts'
import { type NodeRadio, openRadio } from '../../../src/node/radio/radio.ts'
import { createSeededRandom } from '../../../src/node/radio/demo/seeded-random.ts'
import { START } from '../../support/app.ts'
import {
  createHostileRadio,
  entryBytes,
  FILLER,
  frame,
  type HostileRadio,
  makeGarbage,
  type OnAir,
  packetBytes,
} from '../../support/radio/hostile.ts'
import { createDice, type Random } from '../../support/mesh/made-up.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { createMeshModel, type MeshModel } from '../../support/mesh/model.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from '../../support/radio/device.ts'
import { until } from '../../support/radio/service.ts'
import { comparable, readTables } from '../../support/mesh/tables.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

const OWN = 0xa0cb0001

const endings: (() => unknown)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

/** A service on one radio, and a model that follows what the radio sends. */
type Torture = {
  readonly dice: Random
  readonly clock: ReturnType<typeof createManualClock>
  readonly device: RadioDevice
  readonly mesh: HostileRadio
  readonly model: MeshModel
  readonly store: SqliteStore
  radio(): NodeRadio
  /** Requested handshakes. */
  handshakes(): number
  /** The next handshake ends after that many nodes. */
  cutHandshake(afterNodes: number): void
  restartService(): Promise<void>
}

async function startTorture(seed: number): Promise<Torture> {
  const dice = createDice(createSeededRandom(seed))
  const clock = createManualClock(START)
  const mesh = createHostileRadio(dice, OWN, seed % 2 === 0 ? '2.7' : '2.8')
  const model = createMeshModel(OWN)
  let asked = 0
  let cut: number | null = null
  const handshake = (nonce: number) => {
    asked += 1
    const nodes = cut === null ? mesh.entries() : mesh.entries().slice(0, cut)
    for (const entry of nodes) model.readEntry(entry, clock.now())
    const replays = cut === null ? mesh.replays() : []
    const said = [
      fromRadio({ case: 'myInfo', value: { myNodeNum: OWN } }),
      fromRadio({ case: 'channel', value: { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } } }),
      ...nodes.map(entryBytes),
      ...(cut === null ? [fromRadio({ case: 'configCompleteId', value: nonce }), ...replays.map(packetBytes)] : []),
    ]
    for (const { sent, arrival } of replays) model.hear(sent, arrival, clock.now(), true)
    cut = null
    return said
  }
  const device = await startRadioDevice({ handshake })
  endings.push(() => device.stop())
  const store = openMemoryStore()
  endings.push(() => store.close())
  const parsed = parseConfig({ MESHTASTIC_TCP: `127.0.0.1:${device.port}` })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const problem = (...line: unknown[]) => expect(line).toStrictEqual([])
  const log = { debug: () => {}, info: () => {}, warn: problem, error: problem }
  let radio = openRadio({ config: parsed.config, store, log, clock, random: createSeededRandom(seed) })
  radio.start()
  endings.push(() => radio.close())
  const torture: Torture = {
    dice,
    clock,
    device,
    mesh,
    model,
    store,
    radio: () => radio,
    handshakes: () => asked,
    cutHandshake(afterNodes) {
      cut = afterNodes
    },
    async restartService() {
      const before = asked
      await radio.close()
      radio = openRadio({ config: parsed.config, store, log, clock, random: createSeededRandom(seed) })
      radio.start()
      await untilConnected(torture, before)
    },
  }
  await untilConnected(torture, 0)
  return torture
}

/** Time advances only while the link waits for it, so the model knows when each packet arrives. */
async function untilConnected(torture: Torture, before: number): Promise<void> {
  await until(() => {
    const [link] = torture.radio().links()
    if (link?.state === 'waiting' || link?.state === 'busy') torture.clock.advance(20_000)
    expect([torture.handshakes() - before, link?.state]).toStrictEqual([1, 'connected'])
  })
  await settle(torture)
}

/** Until everything sent is read, and everything read is stored. */
async function settle(torture: Torture): Promise<void> {
  await untilRead(torture)
  await until(() => {
    torture.clock.advance(100)
    expect(torture.radio().waiting()).toBe(0)
  })
}

let barrier = 1000

async function untilRead({ device, radio }: Torture): Promise<void> {
  barrier += 1
  device.sendRaw(FILLER)
  const mark = fromRadio({ case: 'queueStatus', value: { free: barrier, maxlen: 16 } })
  await until(() => {
    device.sendRaw(frame(mark))
    expect(radio().links()[0]?.queue?.free).toBe(barrier)
  })
}

/** Writes as one piece, in pieces, or byte by byte. */
function write({ dice, device }: Torture, bytes: Uint8Array): void {
  const size = dice.pick([bytes.length, bytes.length, 1, 7, 200])
  for (let at = 0; at < bytes.length; at += size) device.sendRaw(bytes.slice(at, at + size))
}

/** Live traffic, mixed with everything else that may stand between frames. */
function playTraffic(torture: Torture, recent: OnAir[]): void {
  const { dice, mesh, model, clock } = torture
  for (let count = dice.below(50); count >= 0; count--) {
    if (dice.chance(0.3)) write(torture, makeGarbage(dice))
    const isCopy = recent.length > 0 && dice.chance(0.25)
    const before = recent[dice.below(recent.length)]
    const on =
      isCopy && before !== undefined ? (dice.chance(0.5) ? before : mesh.hearCopy(before)) : mesh.hear(clock.now())
    recent.push(on)
    write(torture, frame(packetBytes(on)))
    model.hear(on.sent, on.arrival, clock.now())
  }
}

/** Part of a frame, and no more of it. */
function sendHalfFrame(torture: Torture): void {
  const { dice, mesh, clock } = torture
  const whole = frame(packetBytes(mesh.hear(clock.now())))
  write(torture, whole.slice(0, 1 + dice.below(whole.length - 1)))
}

/** The radio hears what the service misses. */
function missTraffic({ dice, mesh, clock }: Torture): void {
  for (let count = dice.below(20); count > 0; count--) mesh.hear(clock.now())
}

const TROUBLES = {
  async kick(torture: Torture) {
    const before = torture.handshakes()
    if (torture.dice.chance(0.7)) sendHalfFrame(torture)
    torture.device.kick()
    missTraffic(torture)
    await untilConnected(torture, before)
  },
  async cutHandshake(torture: Torture) {
    const before = torture.handshakes()
    torture.cutHandshake(torture.dice.below(5))
    torture.device.kick()
    await until(() => {
      const [link] = torture.radio().links()
      if (link?.state === 'waiting' || link?.state === 'busy') torture.clock.advance(20_000)
      expect(torture.handshakes() - before).toBe(1)
    })
    await untilRead(torture)
    sendHalfFrame(torture)
    torture.device.kick()
    await untilConnected(torture, before + 1)
  },
  async reboot(torture: Torture) {
    const before = torture.handshakes()
    missTraffic(torture)
    write(torture, frame(fromRadio({ case: 'rebooted', value: true })))
    await untilConnected(torture, before)
  },
  async silence(torture: Torture) {
    const before = torture.handshakes()
    torture.device.setSilent(true)
    missTraffic(torture)
    torture.clock.advance(160_000)
    torture.device.setSilent(false)
    await untilConnected(torture, before)
  },
  async restartService(torture: Torture) {
    await torture.restartService()
  },
  async nothing(torture: Torture) {
    torture.clock.advance(torture.dice.below(20_000))
  },
} as const satisfies Record<string, (torture: Torture) => Promise<void>>

describe('after everything that can happen to a link', () => {
  // In 105 and 108 the service restarts at a bad moment; in 128 a waypoint is deleted and set again in one batch.
  it.each([1, 2, 3, 4, 105, 108, 128])('the database holds exactly what was sent, once (seed %i)', async (seed) => {
    const torture = await startTorture(seed)
    const { dice, store, model } = torture
    const names: readonly (keyof typeof TROUBLES)[] = [
      'kick',
      'cutHandshake',
      'reboot',
      'silence',
      'restartService',
      'nothing',
    ]
    let recent: OnAir[] = []
    // Each kind of trouble three times, in any order.
    const plan = [...names, ...names, ...names].map((name) => ({ name, at: dice.below(1e9) }))
    for (const { name } of plan.toSorted((a, b) => a.at - b.at)) {
      playTraffic(torture, recent)
      await settle(torture)
      await TROUBLES[name](torture)
      if (name === 'restartService') recent = []
    }
    const stored = readTables(store)
    expect(stored).toStrictEqual(comparable(model.tables()))
    for (const rows of Object.values(stored)) expect(rows.length).toBeGreaterThan(0)
    expect(stored['packets']?.length).toBeGreaterThan(200)
  })

  it('none of 5000 packets at once is lost', async () => {
    const torture = await startTorture(9)
    const { clock, device, mesh, model, store } = torture
    const at = clock.now()
    const heard = Array.from({ length: 5000 }, () => mesh.hear(at))
    for (const on of heard) model.hear(on.sent, on.arrival, at)
    for (const on of heard) device.sendRaw(frame(packetBytes(on)))
    await settle(torture)
    const stored = readTables(store)
    expect(stored).toStrictEqual(comparable(model.tables()))
    expect(stored['packets']).toHaveLength(5000)
  })
})
