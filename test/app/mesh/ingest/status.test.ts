import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { followRenumbered } from '../../../../src/app/mesh/nodes/identity/renumbering.ts'
import type { FromRadioVariant } from '../../../support/radio/device.ts'
import {
  createTestMesh,
  FAR,
  heard,
  LOCAL,
  myInfo,
  nodeStatus,
  packet,
  seconds,
  store,
  type TestMesh,
  text,
  user,
} from '../../../support/mesh/mesh.ts'
import { START } from '../../../support/app.ts'
import { createSigner } from '../../../support/mesh/signer.ts'

const BROKER = { kind: 'mqtt', name: 'mqtt://broker' } as const
const MINUTE = 60_000
const HOUR = 60 * MINUTE

let mesh: TestMesh

beforeEach(async () => {
  mesh = await createTestMesh()
  await store(mesh.ingest, [myInfo])
})
afterEach(() => mesh.app.close())

const hear = (variants: readonly FromRadioVariant[], at = START) => store(mesh.ingest, variants, { at })

/** As a gateway publishes it. */
async function publish(variant: FromRadioVariant, at = START): Promise<void> {
  if (variant.case !== 'packet') throw new Error('a broker delivers packets only')
  const told = heard({ case: 'packet', value: { ...variant.value, viaMqtt: true, rxRssi: undefined, rxSnr: 0 } })
  if (told.event.type !== 'packet') throw new Error('no packet')
  await mesh.ingest.store([{ source: BROKER, event: { ...told.event, receivedAt: at, gateway: 0x77 } }])
}

async function detail(nodeNum = FAR): Promise<Record<string, unknown>> {
  const admin = await mesh.app.admin()
  return Object(await (await admin.send('GET', `/api/nodes/${nodeNum}`)).json())
}
const statusOf = async (nodeNum = FAR) => (await detail(nodeNum))['status']

describe('the status of a node', () => {
  it('is the latest that it sent, with the time at which it was heard', async () => {
    await hear([packet(text('hi'))])
    expect(await statusOf()).toBe(null)
    await hear([packet(nodeStatus('At the hut'))], START + MINUTE)
    expect(await statusOf()).toStrictEqual({ text: 'At the hut', time: START + MINUTE })
    await hear([packet(nodeStatus('On the way down'))], START + HOUR)
    expect(await mesh.node()).toMatchObject({ status: { text: 'On the way down', time: START + HOUR } })
  })

  it('ends with an empty one, and an older one does not bring it back', async () => {
    await hear([packet(nodeStatus('At the hut'))])
    await hear([packet(nodeStatus(''))], START + HOUR)
    expect(await statusOf()).toBe(null)
    await hear([packet(nodeStatus('At the hut'), { rxTime: seconds(START + MINUTE) })], START + 2 * HOUR)
    expect(await statusOf()).toBe(null)
  })

  it('is not replaced by one that was heard before it', async () => {
    await hear([packet(nodeStatus('newer'))], START + HOUR)
    await hear([packet(nodeStatus('waited in a radio'), { rxTime: seconds(START) })], START + 2 * HOUR)
    await store(mesh.ingest, [packet(nodeStatus('replayed'), { rxTime: seconds(START), rxRssi: undefined })], {
      at: START + 3 * HOUR,
      replayed: true,
    })
    await store(mesh.ingest, [packet(nodeStatus('untimed'), { rxTime: 0, rxRssi: undefined })], {
      at: START + 3 * HOUR,
      replayed: true,
    })
    expect(await statusOf()).toStrictEqual({ text: 'newer', time: START + HOUR })
  })

  it('is never from the future, whatever a gateway writes, and the next one replaces it', async () => {
    await publish(packet(nodeStatus('ahead'), { rxTime: seconds(START + 9 * MINUTE) }))
    expect(await statusOf()).toStrictEqual({ text: 'ahead', time: START })
    await publish(packet(nodeStatus('next')), START + 1000)
    expect(await statusOf()).toMatchObject({ text: 'next' })
  })

  it('of a node that our own radio hears does not come from a broker, unless it is signed', async () => {
    const node = createSigner(1)
    const from = { from: node.nodeNum }
    await hear([packet(node.user({ longName: 'Hill' }), from), packet(nodeStatus('heard'), from)])
    await publish(packet(nodeStatus('forged'), from), START + MINUTE)
    expect(await detail(node.nodeNum)).toMatchObject({ status: { text: 'heard' }, statusSigned: false })
    await publish(node.packet(nodeStatus('signed')), START + 2 * MINUTE)
    expect(await detail(node.nodeNum)).toMatchObject({ status: { text: 'signed' }, statusSigned: true })
    await hear([packet(nodeStatus('unsigned'), from)], START + 3 * MINUTE)
    await publish(packet(nodeStatus('forged'), from), START + 4 * MINUTE)
    expect(await detail(node.nodeNum)).toMatchObject({ status: { text: 'signed' }, statusSigned: true })
  })

  it('comes from a broker as long as nobody else reports one', async () => {
    await publish(packet(nodeStatus('told')))
    expect(await statusOf()).toMatchObject({ text: 'told' })
    await hear([packet(nodeStatus('heard'))], START + MINUTE)
    await publish(packet(nodeStatus('forged')), START + 2 * MINUTE)
    expect(await statusOf()).toMatchObject({ text: 'heard' })
  })

  it('of one of our radios comes from its own connection alone', async () => {
    await hear([packet(nodeStatus('ours'), { from: LOCAL, rxSnr: 0, rxRssi: undefined })])
    await hear([packet(nodeStatus('forged'), { from: LOCAL })], START + MINUTE)
    await publish(packet(nodeStatus('forged'), { from: LOCAL }), START + 2 * MINUTE)
    expect(await statusOf(LOCAL)).toMatchObject({ text: 'ours' })
  })

  it('of a signing node loses its shield when a user takes another key', async () => {
    const node = createSigner(1)
    await publish(node.packet(node.user({ longName: 'Hill' })))
    await publish(node.packet(nodeStatus('signed')))
    await publish(packet(user({ longName: 'Hill', publicKey: new Uint8Array(32).fill(7) }), { from: node.nodeNum }))
    const { refusedPublicKey } = await detail(node.nodeNum)
    const admin = await mesh.app.admin()
    const answer = await admin.send('PUT', `/api/nodes/${node.nodeNum}/key`, { publicKey: refusedPublicKey })
    expect(answer.status).toBe(200)
    expect(await detail(node.nodeNum)).toMatchObject({ status: { text: 'signed' }, statusSigned: false })
  })

  it('moves with the node to a new number, and a new one stays', async () => {
    const [older, newer] = [0xc0000001, 0xc0000002]
    const announced = user({ longName: 'Hill', publicKey: new Uint8Array(32).fill(1) })
    await hear([packet(announced, { from: older }), packet(nodeStatus('moved'), { from: older })])
    await hear([packet(announced, { from: newer })], START + HOUR)
    const later = START + 3 * HOUR
    await followRenumbered({ store: mesh.app.store, log: mesh.app.ports.log, now: () => later }, async () => true)
    expect(await detail(newer)).toMatchObject({ formerNodeNums: [older], status: { text: 'moved', time: START } })
  })
})

describe('a name from which something was removed', () => {
  it('is marked until the node announces one without', async () => {
    await hear([packet(user({ longName: 'Hi\u200bll', shortName: 'H' }))])
    expect(await mesh.node()).toMatchObject({ longName: 'Hill', nameAltered: true })
    await hear([packet(user({ shortName: 'H' }))], START + MINUTE)
    expect(await mesh.node()).toMatchObject({ longName: 'Hill', nameAltered: true })
    await hear([packet(user({ longName: 'Hill', shortName: 'H' }))], START + 2 * MINUTE)
    expect(await mesh.node()).toMatchObject({ longName: 'Hill', nameAltered: false })
  })

  it('does not replace the name of another node, which has another id', async () => {
    await hear([packet(user({ longName: 'Hill', shortName: 'H' }))])
    await hear([packet(user({ longName: 'H\u202eill\u200b', shortName: 'H' }), { from: 7 })])
    const all: Record<string, unknown>[] = await mesh.nodes()
    expect(
      all.filter(({ longName }) => longName === 'Hill').map(({ nodeId, nameAltered }) => [nodeId, nameAltered]),
    ).toStrictEqual([
      ['!00000007', true],
      ['!a0cb0002', false],
    ])
  })

  it('is not believed from a broker where our own radio heard another one', async () => {
    await hear([packet(user({ longName: 'Hill', shortName: 'H' }))])
    await publish(packet(user({ longName: 'Hill\u200b', shortName: 'H' })), START + MINUTE)
    expect(await mesh.node()).toMatchObject({ longName: 'Hill', nameAltered: false, spoofSuspected: false })
  })
})
