import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/node/clock.ts'
import { type NodeRadio, openRadio } from '../../src/node/radio/radio.ts'
import { type Client, createTestApp, START, type TestApp } from '../support/app.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { packet, text } from '../support/mesh/mesh.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from '../support/radio/device.ts'
import { readRadio } from '../support/radio/recorded.ts'

/** A moment after the recordings: their times are in the past. */
const RECORDED = Date.UTC(2026, 10, 21, 13)

const running: { close(): void | Promise<void> }[] = []

afterEach(async () => {
  for (const each of running.splice(0).toReversed()) await each.close()
})

async function startApp(): Promise<TestApp> {
  const app = await createTestApp()
  running.push(app)
  return app
}

async function startDevice(handshake?: (nonce: number) => Uint8Array[]): Promise<RadioDevice> {
  const device = await startRadioDevice(handshake === undefined ? {} : { handshake })
  running.push({ close: () => device.stop() })
  return device
}

function listenTo(app: TestApp, { port }: RadioDevice): NodeRadio {
  const config = { ...app.ports.config, MESHTASTIC_TCP: [{ host: '127.0.0.1', port }] }
  const radio = openRadio({
    config,
    store: app.store,
    log: app.ports.log,
    clock: { ...systemClock, now: () => RECORDED },
  })
  radio.start()
  running.push(radio)
  return radio
}

async function get(client: Client, path: string): Promise<unknown> {
  const answer = await client.send('GET', path)
  expect(answer.status).toBe(200)
  return answer.json()
}

const countMessages = (app: TestApp) => app.store.sqlite.prepare('select count(*) from messages').pluck().get()

describe('a radio over TCP', () => {
  it('plays recordings of real firmware into nodes and messages, and a repetition changes nothing', async () => {
    const app = await startApp()
    const admin = await app.admin()
    const { handshake, packets } = readRadio('node-B')
    const device = await startDevice(handshake)
    const play = async () => {
      const radio = listenTo(app, device)
      await device.next('heartbeat')
      const end = fromRadio({ case: 'queueStatus', value: { free: 7, maxlen: 16 } })
      device.send(...packets, fromRadio(packet(text('the end'), { from: 5, id: 99 })), end)
      await expect.poll(() => radio.links()[0]?.queue?.free).toBe(7)
      await radio.close()
    }
    await play()
    const nodes = await get(admin, '/api/nodes')
    const messages = await get(admin, '/api/messages')
    expect(nodes).toMatchObject(
      expect.arrayContaining([
        expect.objectContaining({ nodeId: '!796b94bf', longName: 'Lab Node B', isLocal: true, hopsAway: null }),
        expect.objectContaining({ nodeId: '!eaa4e7dd', longName: 'Lab Node A', hopsAway: 0, snr: 6.25, rssi: -70 }),
      ]),
    )
    expect(Object(messages).messages).toHaveLength(8)
    const history = () => app.store.sqlite.prepare('select node_id, metric, t from telemetry order by 1, 2, 3').all()
    const before = history()
    expect(before.length).toBeGreaterThan(5)
    await play()
    expect(Object(await get(admin, '/api/messages'))).toStrictEqual(messages)
    const identity = ({ nodeNum, longName, position }: Record<string, unknown>) => ({ nodeNum, longName, position })
    const again: unknown = await get(admin, '/api/nodes')
    const byNum = (list: unknown) =>
      Object(list)
        .map(identity)
        .toSorted((a: { nodeNum: number }, b: { nodeNum: number }) => a.nodeNum - b.nodeNum)
    expect(byNum(again)).toStrictEqual(byNum(nodes))
    expect(new Set(history().map((row) => JSON.stringify(row)))).toStrictEqual(
      new Set(before.map((row) => JSON.stringify(row))),
    )
  })

  it('loses nothing of a burst of 2000 packets', async () => {
    const app = await startApp()
    const device = await startDevice()
    const radio = listenTo(app, device)
    await device.next('heartbeat')
    const burst = Array.from({ length: 2000 }, (_, n) => fromRadio(packet(text(`m${n}`), { from: 10 + (n % 50) })))
    device.send(...burst)
    await expect.poll(() => countMessages(app)).toBe(2000)
    await radio.close()
    const texts = app.store.sqlite.prepare('select text from messages order by id').pluck().all()
    expect(texts).toStrictEqual(Array.from({ length: 2000 }, (_, n) => `m${n}`))
  })

  it('shows its state, and stores what it heard before it was closed', async () => {
    const app = await startApp()
    const device = await startDevice()
    const radio = listenTo(app, device)
    await device.next('heartbeat')
    await expect.poll(() => radio.links()[0]?.state).toBe('connected')
    expect(radio.links()).toMatchObject([
      { name: `127.0.0.1:${device.port}`, kind: 'tcp', reason: null, radio: { firmwareVersion: '2.8.0.test' } },
    ])
    await radio.close()
    expect(radio.links()).toMatchObject([{ state: 'stopped' }])
    const admin = await app.admin()
    expect(await get(admin, '/api/nodes')).toMatchObject([{ longName: 'Test Radio' }, { longName: 'Far Hill' }])
  })
})

describe('DEMO', () => {
  it('simulates a living mesh', async () => {
    const app = await startApp()
    const clock = createManualClock(START)
    const { config, log } = app.ports
    const radio = openRadio({ config: { ...config, DEMO: true }, store: app.store, log, clock })
    radio.start()
    running.push(radio)
    clock.advance(1000)
    expect(radio.links()).toMatchObject([{ kind: 'demo', name: 'demo', state: 'connected' }])
    clock.advance(15 * 60_000)
    await radio.close()
    const admin = await app.admin()
    const nodes = Object(await get(admin, '/api/nodes'))
    expect(nodes.length).toBeGreaterThan(20)
    expect(nodes.filter(({ position }: { position: unknown }) => position !== null)).toHaveLength(nodes.length)
    expect(nodes.filter(({ isLocal }: { isLocal: boolean }) => isLocal)).toMatchObject([
      { longName: 'Town Hall Gateway' },
    ])
    expect(countMessages(app)).toBeGreaterThan(10)
  })

  it('ignores the configured radios, and says so', async () => {
    const app = await startApp()
    const device = await startDevice()
    const config = { ...app.ports.config, DEMO: true, MESHTASTIC_TCP: [{ host: '127.0.0.1', port: device.port }] }
    const radio = openRadio({ config, store: app.store, log: app.ports.log, clock: createManualClock(START) })
    radio.start()
    running.push(radio)
    expect(radio.links()).toMatchObject([{ kind: 'demo' }])
    expect(app.logged.filter((line) => line.includes('DEMO is true'))).toHaveLength(1)
  })
})
