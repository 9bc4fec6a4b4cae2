import { afterEach, expect, it } from 'vitest'
import { parseConfig } from '../../../src/app/config/config.ts'
import { openRadio } from '../../../src/node/radio/radio.ts'
import { createSeededRandom } from '../../../src/node/radio/demo/seeded-random.ts'
import { FILLER, frame, makeGarbage } from '../../support/radio/hostile.ts'
import { createDice } from '../../support/mesh/made-up.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { readTables } from '../../support/mesh/tables.ts'
import { fromRadio, startRadioDevice } from '../../support/radio/device.ts'
import { until } from '../../support/radio/service.ts'
import { readRadio } from '../../support/radio/recorded.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

/** A moment after the recordings, on the minute. */
const RECORDED = Date.UTC(2026, 10, 21, 13)
const MINUTE = 60_000

const endings: (() => unknown)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

/** Plays a recording with a lost connection in its middle; `say` writes one frame. Returns all tables. */
async function play(
  source: string,
  say: (send: (bytes: Uint8Array) => void, whole: Uint8Array) => void,
  half: boolean,
) {
  const { handshake, packets } = readRadio(source)
  const device = await startRadioDevice({ handshake })
  const clock = createManualClock(RECORDED)
  const store = openMemoryStore()
  const parsed = parseConfig({ MESHTASTIC_TCP: `127.0.0.1:${device.port}` })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const problem = (...line: unknown[]) => expect(line).toStrictEqual([])
  const log = { debug: () => {}, info: () => {}, warn: problem, error: problem }
  const radio = openRadio({ config: parsed.config, store, log, clock })
  radio.start()
  endings.push(
    () => device.stop(),
    () => store.close(),
    () => radio.close(),
  )
  let mark = 1000
  const settle = async () => {
    mark += 1
    device.sendRaw(FILLER)
    await until(() => {
      device.sendRaw(frame(fromRadio({ case: 'queueStatus', value: { free: mark, maxlen: 16 } })))
      expect(radio.links()[0]?.queue?.free).toBe(mark)
    })
    await until(() => {
      if (radio.waiting() > 0) clock.advance(100)
      expect(radio.waiting()).toBe(0)
    })
    // The next event comes at the same time in each run.
    clock.advance(MINUTE - (clock.now() % MINUTE))
    await until(() => expect(radio.waiting()).toBe(0))
  }
  const connected = (reconnects: number) =>
    until(() => {
      const [link] = radio.links()
      if (link?.state === 'waiting') clock.advance(2000)
      expect([link?.state, link?.reconnects]).toStrictEqual(['connected', reconnects])
    })
  await connected(0)
  await settle()
  const middle = packets.length >> 1
  for (const payload of packets.slice(0, middle)) say(device.sendRaw, frame(payload))
  await settle()
  const next = packets[middle]
  if (half && next !== undefined) device.sendRaw(frame(next).slice(0, 9))
  device.kick()
  await connected(1)
  await settle()
  for (const payload of packets.slice(middle)) say(device.sendRaw, frame(payload))
  await settle()
  return readTables(store)
}

it.each(['node-B', 'node-C'])(
  'a recording of %s between noise, twice and byte by byte is stored like the recording alone',
  async (source) => {
    const alone = await play(source, (send, whole) => send(whole), false)
    const dice = createDice(createSeededRandom(7))
    const torn = await play(
      source,
      (send, whole) => {
        send(makeGarbage(dice))
        for (const byte of whole) send(Uint8Array.of(byte))
        send(makeGarbage(dice))
        send(whole)
      },
      true,
    )
    expect(torn).toStrictEqual(alone)
    expect(alone['packets']?.length).toBeGreaterThan(5)
  },
)
