import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, expect, it } from 'vitest'
import { AdminMessageSchema } from '../../../../src/meshtastic/gen/admin_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { FAR, OWN, type RadioService, startRadioService, until } from '../../../support/radio/service.ts'

const running: RadioService[] = []

afterEach(async () => {
  for (const service of running.splice(0)) await service.stop()
})

/** Numbers of the nodes that the radio was told to forget. */
function removed({ device }: RadioService): number[] {
  return device.received.flatMap(({ payloadVariant: { case: variant, value } }) => {
    if (variant !== 'packet' || value.payloadVariant.case !== 'decoded') return []
    const { portnum, payload } = value.payloadVariant.value
    if (portnum !== PortNum.ADMIN_APP) return []
    expect(value).toMatchObject({ to: OWN, hopLimit: 0 })
    const admin = fromBinary(AdminMessageSchema, payload).payloadVariant
    return admin.case === 'removeByNodenum' ? [admin.value] : []
  })
}

async function start() {
  const service = await startRadioService()
  running.push(service)
  const admin = await service.app.admin()
  const remove = async (nodeNum: number) =>
    expect((await admin.send('DELETE', `/api/nodes/${nodeNum}`)).status).toBe(204)
  const settle = () =>
    until(() => {
      if (service.radio.waiting() > 0) service.clock.advance(100)
      expect(service.radio.waiting()).toBe(0)
    })
  const reconnect = async () => {
    service.device.kick()
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    service.clock.advance(5000)
    await until(() => expect(service.radio.links()[0]?.state).toBe('connected'))
    await settle()
  }
  const nodes = () => service.store.sqlite.prepare('select node_num from nodes order by 1').pluck().all()
  return { service, remove, reconnect, settle, nodes }
}

it('a radio forgets a deleted node and does not bring it back', async () => {
  const { service, remove, reconnect, nodes } = await start()
  await remove(FAR)
  await until(() => expect(removed(service)).toStrictEqual([FAR]))
  // This radio reports the node again anyway.
  await reconnect()
  await until(() => expect(removed(service)).toStrictEqual([FAR, FAR]))
  expect(nodes()).toStrictEqual([OWN])
})

it('a radio that was disconnected is told after it reconnects', async () => {
  const { service, remove, settle, nodes } = await start()
  service.device.kick()
  await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
  await remove(FAR)
  expect(removed(service)).toStrictEqual([])
  service.clock.advance(5000)
  await until(() => expect(service.radio.links()[0]?.state).toBe('connected'))
  await until(() => expect(removed(service)).toStrictEqual([FAR]))
  await settle()
  expect(nodes()).toStrictEqual([OWN])
})

it('a radio is never told to forget itself', async () => {
  const { service, remove, reconnect, nodes } = await start()
  await remove(OWN)
  await reconnect()
  expect(removed(service)).toStrictEqual([])
  expect(nodes()).toStrictEqual([OWN, FAR])
})
