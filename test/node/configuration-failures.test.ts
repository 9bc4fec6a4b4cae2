import { afterEach, describe, expect, it } from 'vitest'
import { Routing_Error } from '../../src/meshtastic/gen/payloads_pb.ts'
import { type ConfigService, startConfigService } from '../support/config-service.ts'
import { until } from '../support/radio-service.ts'

const running: ConfigService[] = []
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop()
})

async function start(): Promise<ConfigService> {
  const service = await startConfigService()
  running.push(service)
  return service
}

describe('a radio that', () => {
  const change = { values: { root: 'msh/EU' } }
  const begin = async (manners: Partial<ConfigService['device']['manners']>) => {
    const service = await start()
    Object.assign(service.device.manners, manners)
    await service.change('mqtt', change)
    return service
  }

  it.each(['NOT_AUTHORIZED', 'ADMIN_BAD_SESSION_KEY'] as const)('refuses with %s', async (name) => {
    const service = await begin({ refuseWith: Routing_Error[name] })
    expect(await service.outcome('mqtt')).toMatchObject({ state: 'failed', reason: `the radio refused it: ${name}` })
    expect(service.device.admin).toHaveLength(1)
    expect(service.device.saved.modules.get('mqtt')).toMatchObject({ payloadVariant: { value: { root: '' } } })
  })

  it('does not answer', async () => {
    const service = await begin({ isMute: true })
    await until(() => expect(service.device.admin).toHaveLength(1))
    service.clock.advance(14_999)
    expect((await service.read('mqtt'))['lastChange']).toMatchObject({ state: 'applying' })
    service.clock.advance(1)
    expect(await service.outcome('mqtt')).toMatchObject({ state: 'failed', reason: expect.stringMatching('nothing') })
    expect(service.device.admin).toHaveLength(1)
  })

  it('does not restart: whether it saved is not known', async () => {
    const service = await begin({ ignoresCommit: true })
    await until(() => expect(service.device.admin).toHaveLength(3))
    await until(() => {
      service.clock.advance(1000)
      expect(
        service.device.received.filter(({ payloadVariant }) => payloadVariant.case === 'wantConfigId'),
      ).toHaveLength(2)
    })
    const outcome = await service.outcome('mqtt')
    expect(outcome).toMatchObject({ state: 'unknown', reason: expect.stringMatching('did not restart') })
    expect(service.device.connections()).toBe(1)
    await service.untilConnected()
  })

  it('hangs up midway: it has its old values', async () => {
    const service = await begin({ hangsUpMidway: true })
    expect(await service.outcome('mqtt', 500)).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching('before the radio was told to save'),
    })
    expect(service.device.saved.modules.get('mqtt')).toMatchObject({ payloadVariant: { value: { root: '' } } })
  })

  it('comes back with something else', async () => {
    const service = await begin({
      onSave: ({ modules }) => {
        const value = modules.get('mqtt')?.payloadVariant.value
        if (value !== undefined && 'root' in value) value.root = 'msh/XX'
      },
    })
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'differs', differing: ['root'] })
    expect((await service.read('mqtt'))['values']).toMatchObject({ root: 'msh/XX' })
  })

  it('hangs up without a word has saved when it counts one start more', async () => {
    const service = await begin({ answersCommit: false })
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied' })
  })

  it('hangs up without a word and counts nothing leaves a doubt', async () => {
    const service = await begin({ answersCommit: false, countsStarts: false })
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'unknown' })
  })

  it('never comes back', async () => {
    const service = await begin({ diesOnCommit: true })
    await until(() => expect(service.device.starts()).toBe(2))
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    expect(await service.outcome('mqtt', 5000)).toMatchObject({
      state: 'unknown',
      reason: 'the radio did not come back',
    })
    expect((await service.read('mqtt'))['editable']).toBe(false)
  })

  it('forges its answer by radio is not believed', async () => {
    const service = await begin({ isMute: true })
    const { id } =
      (await until(() => expect(service.device.packets).toHaveLength(1)), service.device.packets[0] ?? { id: 0 })
    service.device.forge(id, Routing_Error.NOT_AUTHORIZED)
    await service.settle()
    expect((await service.read('mqtt'))['lastChange']).toMatchObject({ state: 'applying' })
  })
})

it('a change that the service did not see the end of is unknown', async () => {
  const service = await start()
  service.device.manners.isMute = true
  await service.change('mqtt', { values: { root: 'x' } })
  await service.restart()
  expect(await service.outcome('mqtt')).toMatchObject({
    state: 'unknown',
    reason: expect.stringMatching('service was stopped'),
  })
})
