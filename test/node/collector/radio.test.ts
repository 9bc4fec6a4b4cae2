import { afterEach, beforeEach, expect, test } from 'vitest'
import { decodeFromRadio } from '../../../src/meshtastic/link/from-radio.ts'
import { type CollectorTarget, startCollectorTarget } from '../../support/radio/collector-target.ts'
import { packet, text } from '../../support/mesh/mesh.ts'
import { fromRadio } from '../../support/radio/device.ts'
import { OWN, type RadioService, startRadioService, until } from '../../support/radio/service.ts'

let target: CollectorTarget
let service: RadioService

beforeEach(async () => {
  target = await startCollectorTarget()
  const token = `mm_${'t'.repeat(43)}`
  service = await startRadioService(undefined, { COLLECTOR_TARGET_URL: target.url, COLLECTOR_TOKEN: token })
})
afterEach(async () => {
  await service.stop()
  await target.stop()
})

const delivered = () =>
  target.deliveries
    .flatMap(({ packets }) => packets)
    .map(({ data }) => decodeFromRadio(Buffer.from(data, 'base64'))?.payloadVariant)

/** Until everything in the outbox is delivered. */
async function untilDelivered(): Promise<void> {
  await until(() => {
    service.clock.advance(1000)
    expect(service.radio.collector()).toMatchObject({ state: 'idle', waiting: 0 })
  })
}

test('the handshake is delivered without settings and keys', async () => {
  await until(() => expect(service.radio.collector()?.waiting).toBe(5))
  await untilDelivered()
  const variants = delivered()
  expect(variants.map((variant) => variant?.case)).toStrictEqual([
    'myInfo',
    'metadata',
    'nodeInfo',
    'nodeInfo',
    'channel',
  ])
  expect(variants[4]).toMatchObject({ value: { settings: { psk: new Uint8Array(0) } } })
})

test('packets sent from here are delivered too, as reported by its radio', async () => {
  expect((await service.send({ text: 'from the hill' })).status).toBe(202)
  const { id } = await service.sent()
  service.device.send(fromRadio(packet(text('an answer'))))
  await until(() => {
    service.clock.advance(1000)
    expect(delivered().filter((variant) => variant?.case === 'packet')).toHaveLength(2)
  })
  await untilDelivered()
  const own = delivered().flatMap((variant) =>
    variant?.case === 'packet' && variant.value.id === id ? [variant.value] : [],
  )
  expect(own.map(({ from, payloadVariant: { value } }) => [from, value])).toMatchObject([[OWN, { portnum: 1 }]])
  const said = own.map(({ payloadVariant: { case: kind, value } }) => (kind === 'decoded' ? value.payload : null))
  expect(said.map((payload) => new TextDecoder().decode(payload ?? undefined))).toStrictEqual(['from the hill'])
})

test('packets that no radio sent are not delivered', async () => {
  expect((await service.send({ text: 'sent' })).status).toBe(202)
  expect((await service.send({ text: 'given up' })).status).toBe(202)
  await service.sent()
  service.device.refuse(true)
  service.device.kick()
  await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
  service.clock.advance(120_000)
  await service.untilState('failed', 'NO_INTERFACE')
  await untilDelivered()
  const said = delivered().flatMap((variant) =>
    variant?.case === 'packet' && variant.value.payloadVariant.case === 'decoded'
      ? [new TextDecoder().decode(variant.value.payloadVariant.value.payload)]
      : [],
  )
  expect(said).toStrictEqual(['sent'])
})
