import { afterEach, describe, expect, it } from 'vitest'
import { Routing_Error } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { startConfigDevice } from '../../../support/radio/config-device.ts'
import { type ConfigService, start, stopServices } from '../../../support/radio/config-service.ts'
import { until } from '../../../support/radio/service.ts'

afterEach(stopServices)

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

  it.each([
    ['the set', 1, 'failed', 'it has its old values'],
    ['the saving', 2, 'unknown', 'it has some of the new values'],
  ])('refuses %s is asked for its values after the restart', async (_step, takes, state, words) => {
    const service = await begin({ refuseWith: Routing_Error.BAD_REQUEST, takes })
    const outcome = await service.outcome('mqtt')
    expect(outcome).toMatchObject({ state, reason: expect.stringContaining('the radio refused it: BAD_REQUEST; ') })
    expect(outcome['reason']).toContain(`${words}, and did not restart`)
    expect(service.device.admin.at(-1)?.payloadVariant.case).toBe('rebootSeconds')
    expect(service.device.saved.modules.get('mqtt')).toMatchObject({ payloadVariant: { value: { root: '' } } })
    await service.untilConnected()
    const shown = service.device.active.modules.get('mqtt')?.payloadVariant.value
    expect(shown).toMatchObject({ root: Object((await service.read('mqtt'))['values'])['root'] })
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

  it('is managed and stays silent is reported as managed', async () => {
    const service = await start()
    await service.change('security', { values: { isManaged: true }, confirm: ['isManaged'] })
    expect(await service.outcome('security', 500)).toMatchObject({ state: 'applied' })
    await service.untilConnected(500)
    const { length } = service.device.admin
    Object.assign(service.device.manners, { isMute: true, takes: length })
    await service.change('mqtt', change)
    await until(() => expect(service.device.admin).toHaveLength(length + 1))
    service.clock.advance(15_000)
    expect(await service.outcome('mqtt')).toMatchObject({
      state: 'failed',
      reason: 'the radio is managed, and accepts changes only from its admin keys; nothing was changed',
    })
  })

  it('comes back with other values', async () => {
    const service = await begin({
      onSave: ({ modules }) => {
        const value = modules.get('mqtt')?.payloadVariant.value
        if (value !== undefined && 'root' in value) value.root = 'msh/XX'
      },
    })
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'differs', differing: ['root'] })
    expect((await service.read('mqtt'))['values']).toMatchObject({ root: 'msh/XX' })
  })

  it('hangs up silently has saved if its count of starts has grown by one', async () => {
    const service = await begin({ answersCommit: false })
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied' })
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

  it('returns after the time limit is read then', async () => {
    const service = await begin({ diesOnCommit: true })
    await until(() => expect(service.device.starts()).toBe(2))
    expect(await service.outcome('mqtt', 5000)).toMatchObject({ state: 'unknown' })
    service.device.refuse(false)
    await service.untilConnected(5000)
    await until(async () => {
      expect((await service.read('mqtt'))['lastChange']).toMatchObject({ state: 'applied', reason: null })
    })
    service.device.manners.diesOnCommit = false
    await service.change('mqtt', { values: { root: 'msh/US' } })
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied' })
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

it('the result of a change is stored as soon as the database accepts it', async () => {
  const service = await start()
  await service.change('mqtt', { values: { root: 'msh/EU' } })
  service.store.sqlite.exec('alter table device_config_changes rename to away')
  await until(() => expect(service.device.starts()).toBe(2))
  await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
  await service.untilConnected(500)
  await until(() => expect(service.lines.join('\n')).toContain('Data from a radio could not be stored'))
  service.store.sqlite.exec('alter table away rename to device_config_changes')
  expect((await service.read('mqtt'))['lastChange']).toMatchObject({ state: 'applying' })
  service.clock.advance(30_000)
  expect(await service.outcome('mqtt')).toMatchObject({ state: 'applied' })
})

describe('settings that were read a while ago', () => {
  const RENAME = { values: { root: 'msh/EU' } }
  const countReads = (service: ConfigService) =>
    service.device.received.filter(({ payloadVariant }) => payloadVariant.case === 'wantConfigId').length
  const age = async () => {
    const service = await start()
    service.clock.advance(30_000)
    return service
  }

  it('are read again before anything is sent', async () => {
    const service = await age()
    await service.change('mqtt', RENAME)
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied' })
    expect([countReads(service), service.device.connections(), service.device.admin.length]).toStrictEqual([3, 2, 3])
  })

  it('are read again also when the clock was set back', async () => {
    const service = await start()
    service.clock.advance(-60_000)
    await service.change('mqtt', RENAME)
    await until(() => expect(countReads(service)).toBe(2))
  })

  it('do not overwrite what somebody changed at the radio meanwhile', async () => {
    const service = await age()
    const mqtt = service.device.active.modules.get('mqtt')?.payloadVariant.value
    if (mqtt === undefined || !('password' in mqtt)) throw new Error('no mqtt')
    mqtt.password = 'set by telephone'
    await service.change('mqtt', RENAME)
    expect(await service.outcome('mqtt')).toMatchObject({
      state: 'failed',
      reason: 'the settings have changed since they were read; nothing was sent',
    })
    expect([countReads(service), service.device.packets]).toStrictEqual([2, []])
    await service.untilConnected()
    await service.change('mqtt', RENAME)
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied' })
    expect(service.device.saved.modules.get('mqtt')?.payloadVariant.value).toMatchObject({
      password: 'set by telephone',
      root: 'msh/EU',
    })
  })

  it('are left alone when the connection is lost while they are read', async () => {
    const service = await age()
    service.device.setSilent(true)
    await service.change('mqtt', RENAME)
    await until(() => expect(countReads(service)).toBe(2))
    service.device.setSilent(false)
    service.device.kick()
    expect(await service.outcome('mqtt', 500)).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching('nothing'),
    })
    await service.untilConnected(500)
    await service.settle()
    expect(service.device.packets).toStrictEqual([])
  })
})

describe('a change that was checked', () => {
  const NOTHING_ELSE = { secrets: {}, confirm: [], revision: null }
  const prepare = (service: ConfigService, root: string) => {
    const [device] = service.radio.devices()
    if (device === undefined) throw new Error('no device')
    return device.prepare(new Map([['mqtt', { values: { root }, ...NOTHING_ELSE }]]))
  }

  it('blocks others until it is released', async () => {
    const service = await start()
    const first = prepare(service, 'one')
    expect(() => prepare(service, 'two')).toThrow('Configuration change in progress')
    first.release()
    expect(prepare(service, 'two').sections).toMatchObject([{ section: 'mqtt', fields: ['root'] }])
    expect(service.device.packets).toStrictEqual([])
  })

  it('is not sent to a radio that has reconnected since', async () => {
    const service = await start()
    const prepared = prepare(service, 'one')
    service.device.kick()
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    await service.untilConnected(500)
    prepared.start(new Map([['mqtt', 'an id']]))
    await service.settle()
    expect(service.device.packets).toStrictEqual([])
    const again = prepare(service, 'two')
    again.release()
  })
})

it('each of two radios has its own settings', async () => {
  const service = await start()
  const other = await startConfigDevice(0xa0cb0009, { owner: { longName: 'Second' } })
  try {
    await service.restart([other.port])
    await until(() => expect(service.radio.links().map(({ state }) => state)).toStrictEqual(['connected', 'connected']))
    const source = `127.0.0.1:${other.port}`
    const { body } = await service.ask('GET', `/api/configuration?source=${source}`)
    expect(body).toMatchObject({ source, sources: [service.source, source], nodeNum: 0xa0cb0009 })
    const path = `/api/configuration/owner?source=${source}`
    expect((await service.ask('GET', path)).body).toMatchObject({ source, values: { longName: 'Second' } })
    expect((await service.ask('PUT', path, { values: { longName: 'Third' } })).status).toBe(202)
    await until(async () => {
      service.clock.advance(500)
      expect((await service.ask('GET', path)).body).toMatchObject({ lastChange: { state: 'applied' } })
    })
    expect([other.saved.owner.longName, service.device.saved.owner.longName]).toStrictEqual(['Third', 'Test Radio'])
    expect(await service.read('owner')).toMatchObject({ source: service.source, lastChange: null })
  } finally {
    await other.stop()
  }
})
