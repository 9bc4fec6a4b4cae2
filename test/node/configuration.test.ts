import { afterEach, describe, expect, it } from 'vitest'
import { Routing_Error } from '../../src/meshtastic/gen/payloads_pb.ts'
import { auditRows } from '../support/app.ts'
import type { SettingsInit } from '../support/config-device.ts'
import { type ConfigService, OWN, startConfigService } from '../support/config-service.ts'
import { until } from '../support/radio-service.ts'

const KEY = new Uint8Array(32).fill(7)

const INIT: SettingsInit = {
  owner: { id: '!a0cb0001', longName: 'Test Radio', shortName: 'TR', publicKey: new Uint8Array(32).fill(1) },
  channels: [
    { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } },
    { index: 1, role: 2, settings: { name: 'Rescue', psk: KEY, moduleSettings: { positionPrecision: 13 } } },
    { index: 2, role: 0 },
  ],
  configs: [
    { payloadVariant: { case: 'device', value: { role: 2, tzdef: 'CET-1' } } },
    { payloadVariant: { case: 'lora', value: { usePreset: true, region: 3, hopLimit: 3, txEnabled: true } } },
    { payloadVariant: { case: 'network', value: { wifiEnabled: true, wifiSsid: 'home', wifiPsk: 'wifi secret' } } },
    { payloadVariant: { case: 'security', value: { publicKey: KEY, privateKey: KEY } } },
    { payloadVariant: { case: 'sessionkey', value: {} } },
  ],
  modules: [{ payloadVariant: { case: 'mqtt', value: { address: 'mqtt.example.org', password: 'mqtt secret' } } }],
}

const running: ConfigService[] = []
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop()
})

async function start(init: SettingsInit = INIT): Promise<ConfigService> {
  const service = await startConfigService(init)
  running.push(service)
  return service
}

const LIVE = { source: expect.stringMatching(/^127\.0\.0\.1:/), nodeNum: OWN, editable: true }

describe('settings of a radio', () => {
  it('are read in sections, without their secrets', async () => {
    const service = await start()
    const { status, body } = await service.ask('GET', '/api/configuration')
    expect(status).toBe(200)
    expect(body).toMatchObject({ ...LIVE, sources: [service.source], lastChange: null })
    const names = Object(body['sections']).map((each: { section: string }) => each.section)
    expect(names.toSorted()).toStrictEqual(['channels', 'device', 'lora', 'mqtt', 'network', 'owner', 'security'])
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

describe('a radio that', () => {
  it('refuses: nothing has changed', async () => {
    const service = await start()
    service.device.manners.refuseWith = Routing_Error.NOT_AUTHORIZED
    await service.change('mqtt', { values: { root: 'msh/EU' } })
    expect(await service.outcome('mqtt')).toMatchObject({
      state: 'failed',
      reason: 'the radio refused it: NOT_AUTHORIZED',
    })
    expect(service.device.admin).toHaveLength(1)
  })
})
