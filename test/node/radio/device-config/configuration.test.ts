import { generateKeyPairSync } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import {
  Config_LoRaConfig_ModemPreset as ModemPreset,
  Config_LoRaConfig_RegionCode as RegionCode,
} from '../../../../src/meshtastic/gen/config_pb.ts'
import { LockdownStatus_State } from '../../../../src/meshtastic/gen/stream_pb.ts'
import { auditRows } from '../../../support/app.ts'
import { lockdownStatus } from '../../../support/radio/config-device.ts'
import { fromRadio } from '../../../support/radio/device.ts'
import { CHANNEL_KEY, OWN, SETTINGS, start, stopServices } from '../../../support/radio/config-service.ts'
import { until } from '../../../support/radio/service.ts'

afterEach(stopServices)

/** New in firmware 2.8. */
const LICENSED = ['ITU1_70CM', 'ITU2_70CM', 'ITU3_70CM', 'ITU2_125CM'] as const
const PRESETS = ['TINY_FAST', 'TINY_SLOW', 'MEDIUM_TURBO'] as const

const LIVE = { source: expect.stringMatching(/^127\.0\.0\.1:/), nodeNum: OWN, editable: true }

describe('settings of a radio', () => {
  it('are read in sections, without their secrets', async () => {
    const service = await start()
    const { status, body } = await service.ask('GET', '/api/configuration')
    expect(status).toBe(200)
    expect(body).toMatchObject({ ...LIVE, sources: [service.source], lastChange: null })
    const names = Object(body['sections']).map((each: { section: string }) => each.section)
    expect(names.toSorted()).toStrictEqual([
      'channels',
      'device',
      'lora',
      'mqtt',
      'network',
      'owner',
      'position',
      'security',
    ])
    expect(await service.read('network')).toMatchObject({
      ...LIVE,
      kind: 'config',
      readAt: service.clock.now(),
      values: { wifiEnabled: true, wifiSsid: 'home', ipv4Config: { ip: '0.0.0.0' } },
      secrets: { wifiPsk: { isSet: true, kind: null } },
    })
    expect(await service.read('channels')).toMatchObject({
      kind: 'channels',
      values: {
        channels: [
          { index: 0, role: 'PRIMARY', settings: { name: '' } },
          { index: 1, role: 'SECONDARY', settings: { name: 'Rescue', moduleSettings: { positionPrecision: 13 } } },
          { index: 2, role: 'DISABLED', settings: { name: '' } },
        ],
      },
      secrets: {
        'channels.0.settings.psk': { isSet: true, kind: 'default' },
        'channels.1.settings.psk': { isSet: true, kind: 'custom' },
        'channels.2.settings.psk': { isSet: false, kind: 'none' },
      },
    })
    expect(Object((await service.read('owner'))['values'])).toStrictEqual({
      longName: 'Test Radio',
      shortName: 'TR',
      isLicensed: false,
      isUnmessagable: false,
    })
  })

  it('are changed as one edit, saved, and read again after the restart', async () => {
    const service = await start()
    const before = await service.read('network')
    const { body } = await service.change('network', {
      values: { ntpServer: 'pool.example.org' },
      revision: before['revision'],
    })
    expect(body['change']).toMatchObject({ section: 'network', state: 'applying', by: 'admin', fields: ['ntpServer'] })
    await until(() => expect(service.device.starts()).toBe(2))
    await until(() => expect(service.radio.links()[0]?.state).toBe('restarting'))
    expect(await service.outcome('network', 500)).toMatchObject({ state: 'applied', reason: null, differing: [] })
    expect(service.device.admin.map(({ payloadVariant }) => payloadVariant.case)).toStrictEqual([
      'beginEditSettings',
      'setConfig',
      'commitEditSettings',
    ])
    expect(service.device.packets).toHaveLength(3)
    for (const packet of service.device.packets) {
      expect(packet).toMatchObject({ to: OWN, hopLimit: 0, wantAck: false })
    }
    const saved = service.device.saved.configs.get('network')?.payloadVariant.value
    expect(saved).toMatchObject({
      wifiEnabled: true,
      wifiSsid: 'home',
      wifiPsk: 'wifi secret',
      ntpServer: 'pool.example.org',
    })
    expect((await service.read('network'))['values']).toMatchObject({ ntpServer: 'pool.example.org' })
    expect(auditRows(service.app).at(-1)).toStrictEqual({
      action: 'configuration_updated',
      username: 'admin',
      details: {
        source: service.source,
        section: 'network',
        before: { ntpServer: '' },
        after: { ntpServer: 'pool.example.org' },
        secretsChanged: [],
      },
    })
  })
})

describe('what firmware 2.8 added', () => {
  const groups = [
    { presets: [ModemPreset.LONG_FAST] },
    { presets: PRESETS.map((name) => ModemPreset[name]), licensedOnly: true },
  ]
  const regionGroups = [
    { region: RegionCode.EU_868, groupIndex: 0 },
    ...LICENSED.map((name) => ({ region: RegionCode[name], groupIndex: 1 })),
    { region: RegionCode.CN, groupIndex: 9 },
  ]
  const beginWith = async (isLicensed: boolean) => {
    const service = await start({
      ...SETTINGS,
      owner: { ...SETTINGS.owner, isLicensed },
      regionPresets: { groups, regionGroups },
    })
    const send = (values: object) =>
      service.ask('PUT', '/api/configuration/lora', { values, confirm: Object.keys(values) })
    return { service, send }
  }

  it('presets that the radio allows in each region are listed, and others are refused', async () => {
    const { service, send } = await beginWith(true)
    expect((await service.read('lora'))['regionPresets']).toStrictEqual([
      { region: 'EU_868', presets: ['LONG_FAST'], licensedOnly: false },
      ...LICENSED.map((region) => ({
        region,
        presets: [...PRESETS],
        licensedOnly: true,
      })),
    ])
    expect((await service.read('owner'))['regionPresets']).toStrictEqual([])
    for (const values of [{ modemPreset: 'TINY_FAST' }, { region: 'ITU1_70CM' }]) {
      expect(await send(values)).toMatchObject({ status: 400, body: { issues: [{ path: 'values.modemPreset' }] } })
    }
    expect((await send({ usePreset: false, modemPreset: 'TINY_FAST' })).status).toBe(202)
  })

  it('a region for licensed operators is refused to others, with any preset', async () => {
    const { send } = await beginWith(false)
    for (const values of [
      { region: 'ITU1_70CM', modemPreset: 'TINY_FAST' },
      { region: 'ITU1_70CM', usePreset: false },
    ])
      expect(await send(values)).toMatchObject({ status: 400, body: { issues: [{ path: 'values.region' }] } })
  })

  it.each([
    ['ITU1_70CM', 34, 'TINY_FAST', 14],
    ['ITU2_70CM', 35, 'TINY_SLOW', 15],
    ['ITU3_70CM', 36, 'MEDIUM_TURBO', 16],
    ['ITU2_125CM', 37, 'TINY_FAST', 14],
  ])('region %s (%d) is set with preset %s (%d)', async (region, regionNum, modemPreset, presetNum) => {
    const { service, send } = await beginWith(true)
    expect((await send({ region, modemPreset })).status).toBe(202)
    expect(await service.outcome('lora', 500)).toMatchObject({ state: 'applied' })
    const saved = service.device.saved.configs.get('lora')?.payloadVariant.value
    expect(saved).toMatchObject({ region: regionNum, modemPreset: presetNum })
    expect((await service.read('lora'))['values']).toMatchObject({ region, modemPreset })
  })

  it('a region that the radio says nothing about allows all, as does older firmware', async () => {
    const { send } = await beginWith(false)
    expect((await send({ region: 'CN', modemPreset: 'MEDIUM_TURBO' })).status).toBe(202)
    const older = await start()
    expect((await older.read('lora'))['regionPresets']).toStrictEqual([])
    const confirm = ['region', 'modemPreset']
    await older.change('lora', { values: { region: 'ITU2_125CM', modemPreset: 'LONG_FAST' }, confirm })
  })

  it('a combination that the radio has already does not prevent other changes', async () => {
    const configs = [
      { payloadVariant: { case: 'lora', value: { usePreset: true, region: 3, modemPreset: 4 } } } as const,
    ]
    const service = await start({ ...SETTINGS, configs, regionPresets: { groups, regionGroups } })
    await service.change('lora', { values: { hopLimit: 5 } })
  })

  it('the packet signature policy needs a confirmation, because a strict radio hears no older firmware', async () => {
    const service = await start()
    const values = { packetSignaturePolicy: 'PACKET_SIGNATURE_POLICY_STRICT' }
    const asked = await service.ask('PUT', '/api/configuration/security', { values })
    expect([asked.status, asked.body]).toMatchObject([409, { confirm: ['packetSignaturePolicy'] }])
    await service.change('security', { values, confirm: ['packetSignaturePolicy'] })
    expect(await service.outcome('security', 500)).toMatchObject({ state: 'applied' })
    expect(service.device.saved.configs.get('security')?.payloadVariant.value).toMatchObject({
      packetSignaturePolicy: 2,
    })
    expect((await service.read('security'))['values']).toMatchObject(values)
  })

  it('a mesh beacon is set up, and the key that it offers is never shown', async () => {
    const targets = { broadcastTargets: [{ region: 3 as const }] }
    const modules = [{ payloadVariant: { case: 'meshBeacon' as const, value: targets } }]
    const service = await start({ ...SETTINGS, modules })
    const values = {
      flags: ['FLAG_LISTEN_ENABLED', 'FLAG_BROADCAST_ENABLED'],
      broadcastMessage: 'Join us',
      broadcastOfferChannel: { name: 'Hut' },
      broadcastOfferRegion: 'ITU3_70CM',
      broadcastOfferPreset: 'TINY_SLOW',
    }
    const secrets = { 'broadcastOfferChannel.psk': Buffer.from(CHANNEL_KEY).toString('base64') }
    await service.change('meshBeacon', { values, secrets })
    expect(await service.outcome('meshBeacon', 500)).toMatchObject({ state: 'applied' })
    expect(service.device.saved.modules.get('meshBeacon')?.payloadVariant.value).toMatchObject({
      flags: 3,
      broadcastOfferChannel: { name: 'Hut', psk: CHANNEL_KEY },
      broadcastOfferRegion: RegionCode.ITU3_70CM,
      broadcastOfferPreset: ModemPreset.TINY_SLOW,
      broadcastTargets: [{ region: 3 }],
    })
    const shown = await service.ask('GET', '/api/configuration/meshBeacon')
    expect(shown.body).toMatchObject({ values, secrets: { 'broadcastOfferChannel.psk': { isSet: true } } })
    expect(shown.text).not.toContain(secrets['broadcastOfferChannel.psk'])
  })
})

describe('a radio in lockdown', () => {
  it('is said to be locked, and nothing that it has emptied is shown, stored or written back', async () => {
    const service = await start()
    const sections = ['network', 'security', 'lora', 'mqtt', 'channels', 'owner']
    const readAll = async () => {
      const all = await Promise.all(sections.map((section) => service.read(section)))
      return all.map(({ values, secrets }) => ({ values, secrets }))
    }
    const stored = () => [
      service.store.sqlite.prepare('select * from device_config order by section').all(),
      service.store.sqlite.prepare('select name, role, channel_index from channels order by channel_index').all(),
    ]
    await until(() => {
      service.clock.advance(100)
      expect(service.store.sqlite.prepare('select count(*) from channels').pluck().get()).toBe(3)
    })
    const [before, storedBefore] = [await readAll(), stored()]
    let revision = 0
    service.device.manners.isLocked = true
    // Somebody locks it while it is connected, then it restarts.
    service.device.send(lockdownStatus(LockdownStatus_State.LOCKED))
    for (const isRestarted of [false, true]) {
      if (isRestarted) service.device.kick()
      await until(() => {
        if (isRestarted) service.clock.advance(500)
        expect(service.device.connections()).toBe(isRestarted ? 2 : 1)
        expect(service.radio.links()[0]).toMatchObject({
          state: 'connected',
          reason: expect.stringMatching(/^the radio is locked/),
        })
      })
      // Whatever came before it is stored as well.
      service.device.send(fromRadio({ case: 'packet', value: { from: 5, id: 1 + Number(isRestarted) } }))
      await until(() => {
        service.clock.advance(100)
        const count = service.store.sqlite.prepare('select count(*) from nodes where node_num = 5 and revision > ?')
        expect(count.pluck().get(revision)).toBe(1)
      })
      revision = Number(service.store.sqlite.prepare('select revision from nodes where node_num = 5').pluck().get())
      expect(await readAll()).toStrictEqual(before)
      expect(stored()).toStrictEqual(storedBefore)
      expect(await service.read('lora')).toMatchObject({ editable: false })
      const refused = await service.ask('PUT', '/api/configuration/lora', { values: { hopLimit: 2 } })
      expect(refused).toMatchObject({ status: 503, body: { detail: expect.stringContaining('the radio is locked') } })
    }
    const { links } = Object((await service.ask('GET', '/api/info')).body)
    expect(links).toMatchObject([{ reason: expect.stringMatching(/^the radio is locked/) }])
    expect(service.device.admin).toStrictEqual([])
    service.device.manners.isLocked = false
    service.device.send(lockdownStatus(LockdownStatus_State.UNLOCKED))
    await until(async () => expect(await service.read('lora')).toMatchObject({ editable: true }))
    expect(service.radio.links()[0]).toMatchObject({ reason: null })
    expect(await readAll()).toStrictEqual(before)
  })
})

describe('a change', () => {
  it('sets a secret that is never shown, and clears it', async () => {
    const service = await start()
    const { text } = await service.change('mqtt', { secrets: { password: 'a new password' } })
    expect(text).not.toContain('a new password')
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied', fields: ['password'] })
    expect(service.device.saved.modules.get('mqtt')).toMatchObject({
      payloadVariant: { value: { address: 'mqtt.example.org', password: 'a new password' } },
    })
    expect(auditRows(service.app).at(-1)?.details).toMatchObject({
      before: {},
      after: {},
      secretsChanged: ['password'],
    })
    await service.change('mqtt', { secrets: { password: null } })
    await until(() => expect(service.device.starts()).toBe(3))
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied' })
    expect(await service.read('mqtt')).toMatchObject({ secrets: { password: { isSet: false } } })
  })

  it('of the private key also changes the public one', async () => {
    const pair = generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' })
    const [privateKey, publicKey] = [pair.d, pair.x].map((each) => Buffer.from(each ?? '', 'base64url'))
    if (privateKey === undefined || publicKey === undefined) throw new Error('no pair')
    const service = await start()
    const secrets = { privateKey: privateKey.toString('base64') }
    await service.change('security', { secrets, confirm: ['privateKey'] })
    expect(await service.outcome('security', 500)).toMatchObject({
      state: 'applied',
      fields: ['privateKey', 'publicKey'],
    })
    expect(service.device.saved.configs.get('security')?.payloadVariant.value).toMatchObject({
      privateKey: Uint8Array.from(privateKey),
      publicKey: Uint8Array.from(publicKey),
    })
  })

  it('of channels applies to those channels alone, and keeps their keys', async () => {
    const service = await start()
    const change = { index: 1, settings: { name: 'Rescue 2', moduleSettings: { positionPrecision: 32 } } }
    const psk = 'AAECAwQFBgcICQoLDA0ODw=='
    await service.change('channels', {
      values: { channels: [change, { index: 2, role: 'SECONDARY', settings: { name: 'New' } }] },
      secrets: { 'channels.2.settings.psk': psk },
      confirm: ['channels.1.settings.name', 'channels.2.role', 'channels.2.settings.name', 'channels.2.settings.psk'],
    })
    expect(await service.outcome('channels', 500)).toMatchObject({ state: 'applied' })
    expect(service.device.admin.map(({ payloadVariant }) => payloadVariant.case)).toStrictEqual([
      'beginEditSettings',
      'setChannel',
      'setChannel',
      'commitEditSettings',
    ])
    expect(service.device.saved.channels.get(1)?.settings).toMatchObject({ name: 'Rescue 2', psk: CHANNEL_KEY })
    expect(service.device.saved.channels.get(2)).toMatchObject({
      role: 2,
      settings: { name: 'New', psk: Uint8Array.from({ length: 16 }, (_, index) => index) },
    })
    expect(service.device.saved.channels.get(0)?.settings?.psk).toStrictEqual(Uint8Array.of(1))
  })

  it('of the owner keeps the other fields', async () => {
    const service = await start()
    await service.change('owner', { values: { longName: 'Bergwacht', shortName: '⛰' } })
    expect(await service.outcome('owner', 500)).toMatchObject({ state: 'applied' })
    expect(service.device.saved.owner).toMatchObject({ longName: 'Bergwacht', shortName: '⛰', id: '!a0cb0001' })
  })

  it.each([
    ['lora', { values: { region: 'US', modemPreset: 'LONG_SLOW', hopLimit: 5 } }, ['modemPreset', 'region']],
    ['lora', { values: { txEnabled: false, usePreset: false }, confirm: ['usePreset'] }, ['txEnabled']],
    ['lora', { values: { hopLimit: 0 } }, ['hopLimit']],
    ['network', { values: { wifiEnabled: false }, secrets: { wifiPsk: null } }, ['wifiEnabled', 'wifiPsk']],
    ['channels', { secrets: { 'channels.0.settings.psk': 'Ag==' }, confirm: ['psk'] }, ['channels.0.settings.psk']],
    ['security', { values: { isManaged: true } }, ['isManaged']],
    ['owner', { values: { isLicensed: true } }, ['isLicensed']],
  ])('of %s %j needs a confirmation', async (section, body, confirm) => {
    const service = await start()
    const { length } = auditRows(service.app)
    const { status, body: problem } = await service.ask('PUT', `/api/configuration/${section}`, body)
    expect([status, problem['code']]).toStrictEqual([409, 'confirmation_required'])
    expect(Object(problem['confirm']).toSorted()).toStrictEqual(confirm)
    expect(service.device.packets).toStrictEqual([])
    expect(auditRows(service.app)).toHaveLength(length)
    expect((await service.read(section))['lastChange']).toBeNull()
    await service.change(section, { ...body, confirm: [...confirm, ...('confirm' in body ? body.confirm : [])] })
    expect(await service.outcome(section, 500)).toMatchObject({ state: 'applied' })
  })

  it('is refused as a whole if one field is wrong, and nothing is sent or recorded', async () => {
    const service = await start()
    const { length } = auditRows(service.app)
    const wrong: [object, string[]][] = [
      [{ values: { hopLimit: 9, region: 'NOWHERE', usePreset: true } }, ['values.hopLimit', 'values.region']],
      [{ values: {}, what: 1 }, ['']],
      [{ values: [] }, ['values']],
      [{ secrets: { wifiPsk: 5 } }, ['secrets.wifiPsk']],
    ]
    for (const [body, paths] of wrong) {
      const answer = await service.ask('PUT', '/api/configuration/lora', body)
      expect([answer.status, answer.body['code']]).toStrictEqual([400, 'invalid_request'])
      expect(Object(answer.body['issues']).map(({ path }: { path: string }) => path)).toStrictEqual(paths)
    }
    const twoWays = {
      values: { 'ipv4Config.ip': '1.2.3.4', ipv4Config: { ip: '1.2.3.5' } },
      confirm: ['ipv4Config.ip'],
    }
    expect(await service.ask('PUT', '/api/configuration/network', twoWays)).toMatchObject({ status: 400 })
    const two = { values: { channels: [{ index: 1, role: 'PRIMARY' }] }, confirm: ['channels.1.role'] }
    const none = { values: { channels: [{ index: 0, role: 'DISABLED' }] }, confirm: ['channels.0.role'] }
    const double = { values: { channels: [{ index: 1 }, { index: 1 }] } }
    for (const body of [two, none, double, { values: { channels: [{ index: 7 }] } }, { values: { channels: {} } }]) {
      expect(await service.ask('PUT', '/api/configuration/channels', body)).toMatchObject({ status: 400 })
    }
    expect(service.device.packets).toStrictEqual([])
    expect(auditRows(service.app)).toHaveLength(length)
  })

  it('to the present values sends nothing', async () => {
    const service = await start()
    const { values } = Object(await service.read('lora'))
    const { length } = auditRows(service.app)
    for (const body of [{ values }, {}]) {
      const answer = await service.ask('PUT', '/api/configuration/lora', body)
      expect([answer.status, answer.body]).toStrictEqual([200, { change: null }])
    }
    expect([service.device.packets, auditRows(service.app).length]).toStrictEqual([[], length])
  })

  it('of a section that has changed meanwhile is refused', async () => {
    const service = await start()
    const { revision } = await service.read('mqtt')
    await service.change('mqtt', { secrets: { password: 'another' } })
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied' })
    await service.untilConnected(500)
    const stale = await service.ask('PUT', '/api/configuration/mqtt', { values: { root: 'x' }, revision })
    expect([stale.status, stale.body['code']]).toStrictEqual([409, 'configuration_changed'])
    expect((await service.read('mqtt'))['revision']).not.toBe(revision)
  })

  it('is refused while another one is under way', async () => {
    const service = await start()
    service.device.manners.isMute = true
    await service.change('mqtt', { values: { root: 'one' } })
    const second = await service.ask('PUT', '/api/configuration/device', { values: { tzdef: 'UTC0' } })
    expect([second.status, second.body['code']]).toStrictEqual([409, 'configuration_change_in_progress'])
    service.clock.advance(15_000)
    expect(await service.outcome('mqtt')).toMatchObject({ state: 'failed' })
    service.device.manners.isMute = false
    await service.change('device', { values: { tzdef: 'UTC0' } })
    expect(await service.outcome('device', 500)).toMatchObject({ state: 'applied' })
  })

  it('sent twice at the same instant is made once', async () => {
    const service = await start()
    const both = await Promise.all(
      ['one', 'two'].map((root) => service.ask('PUT', '/api/configuration/mqtt', { values: { root } })),
    )
    expect(both.map(({ status }) => String(status)).toSorted()).toStrictEqual(['202', '409'])
    expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied' })
    expect(service.device.admin).toHaveLength(3)
  })

  it('of a section that this connection has not read is refused', async () => {
    const service = await start()
    const { status, body } = await service.ask('PUT', '/api/configuration/telemetry', { values: {} })
    expect([status, body['code']]).toStrictEqual([503, 'radio_unavailable'])
    expect(await service.ask('GET', '/api/configuration/telemetry')).toMatchObject({ status: 404 })
    expect(await service.ask('PUT', '/api/configuration/nonsense', {})).toMatchObject({
      status: 404,
      body: { code: 'section_not_found' },
    })
    expect(await service.ask('GET', '/api/configuration?source=other')).toMatchObject({
      status: 404,
      body: { code: 'source_not_found' },
    })
    expect(service.device.packets).toStrictEqual([])
  })

  it('is refused while the radio is away; its last known settings are still shown', async () => {
    const service = await start()
    const before = await service.read('network')
    service.device.setSilent(true)
    service.device.kick()
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    const { status, body } = await service.ask('PUT', '/api/configuration/network', { values: { ntpServer: 'x' } })
    expect([status, body['code']]).toStrictEqual([503, 'radio_unavailable'])
    expect(await service.read('network')).toStrictEqual({ ...before, editable: false, revision: null })
    expect(await service.ask('GET', '/api/configuration')).toMatchObject({ body: { editable: false, nodeNum: OWN } })
  })
})

it('settings can be read and changed with the permissions only', async () => {
  const service = await start()
  const grant = (read: boolean, write: boolean) => ({ configuration: { read, write } })
  const none = await service.app.user('none', grant(false, false))
  const reader = await service.app.user('reader', grant(true, false))
  const writer = await service.app.user('writer', grant(true, true))
  const tries = [
    [service.app.client(), 401, 401],
    [none, 403, 403],
    [reader, 200, 403],
    [writer, 200, 202],
  ] as const
  for (const [client, read, write] of tries) {
    expect((await service.ask('GET', '/api/configuration', undefined, client)).status).toBe(read)
    expect((await service.ask('GET', '/api/configuration/mqtt', undefined, client)).status).toBe(read)
    const body = { values: { root: 'by a writer' } }
    expect((await service.ask('PUT', '/api/configuration/mqtt', body, client)).status).toBe(write)
  }
  expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'applied', by: 'writer' })
})
