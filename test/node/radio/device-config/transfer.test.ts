import { base64Encode } from '@bufbuild/protobuf/wire'
import { create } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import { encodeChannelUrl, parseChannelUrl } from '../../../../src/meshtastic/exchange/channel-url.ts'
import { ChannelSettingsSchema } from '../../../../src/meshtastic/gen/channel_pb.ts'
import { Config_LoRaConfigSchema } from '../../../../src/meshtastic/gen/config_pb.ts'
import type { Scope } from '../../../../src/shared/access/scope.ts'
import { auditRows } from '../../../support/app.ts'
import { type ConfigService, SETTINGS, start, stopServices } from '../../../support/radio/config-service.ts'
import type { SettingsInit } from '../../../support/radio/config-device.ts'
import { until } from '../../../support/radio/service.ts'

afterEach(stopServices)

const CHANNELS = '/api/configuration/transfer/channels'
const FILE = '/api/configuration/transfer/file'
const text = (value: string) => new TextEncoder().encode(value)
/** Every secret of this radio contains this text. */
const MARK = 'l3ak-'
const PRIVATE_KEY = text('l3ak-private-key-of-32-bytes-abc')
const RESCUE_KEY = text('l3ak-channel-key-of-32-bytes-abc')
const PIN = 918_273

const RADIO: SettingsInit = {
  ...SETTINGS,
  channels: [
    { index: 0, role: 1, settings: { psk: Uint8Array.of(1) } },
    {
      index: 1,
      role: 2,
      settings: { name: 'Rescue', psk: RESCUE_KEY, moduleSettings: { positionPrecision: 13 } },
    },
    ...[2, 3, 4, 5, 6, 7].map((index) => ({ index, settings: {} })),
  ],
  configs: [
    { payloadVariant: { case: 'device', value: { role: 2, tzdef: 'CET-1' } } },
    { payloadVariant: { case: 'position', value: { positionFlags: 0x403 } } },
    {
      payloadVariant: {
        case: 'lora',
        value: { usePreset: true, region: 3, hopLimit: 3, txEnabled: true, ignoreIncoming: [77], paFanDisabled: true },
      },
    },
    { payloadVariant: { case: 'network', value: { wifiSsid: 'home', wifiPsk: 'l3ak-wifi', ipv4Config: { ip: 42 } } } },
    { payloadVariant: { case: 'bluetooth', value: { enabled: true, fixedPin: PIN } } },
    {
      payloadVariant: {
        case: 'security',
        value: {
          publicKey: new Uint8Array(32).fill(9),
          privateKey: PRIVATE_KEY,
          adminKey: [new Uint8Array(32).fill(5)],
        },
      },
    },
  ],
  modules: [
    { payloadVariant: { case: 'mqtt', value: { address: 'mqtt.example.org', password: 'l3ak-mqtt' } } },
    { payloadVariant: { case: 'telemetry', value: { deviceUpdateInterval: 900 } } },
  ],
}

/** The mark in all encodings that could hold it. */
const TRACES = [
  MARK,
  Buffer.from(MARK).toString('base64').slice(0, 6),
  Buffer.from(`x${MARK}`).toString('base64').slice(2, 8),
  Buffer.from(`xx${MARK}`).toString('base64').slice(3, 9),
  String(PIN),
]
const tracesIn = (said: string) => TRACES.filter((trace) => said.includes(trace))

function parsed(url: unknown) {
  const read = parseChannelUrl(String(url))
  if (!read.ok) throw new Error(read.problem.kind)
  return read.shared
}

const channel = (name: string, psk: Uint8Array) => create(ChannelSettingsSchema, { name, psk })
const urlOf = (channels: readonly ReturnType<typeof channel>[], isAddOnly = false, lora: object | null = null) =>
  encodeChannelUrl({ channels, lora: lora === null ? null : create(Config_LoRaConfigSchema, lora), isAddOnly })

async function outcomes(service: ConfigService, sections: readonly string[]) {
  await service.outcome(sections[0] ?? '', 500)
  await service.untilConnected(500)
  return Promise.all(sections.map(async (name) => Object((await service.read(name))['lastChange'])))
}

describe('channels are shared', () => {
  it('by name, with their keys, and nothing else: recorded without keys', async () => {
    const service = await start(RADIO)
    const answer = await service.ask('POST', `${CHANNELS}/share`, { channels: [1, 0], lora: true })
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({
      channels: [
        { index: 0, name: '' },
        { index: 1, name: 'Rescue' },
      ],
      lora: true,
    })
    const { channels, lora, isAddOnly } = parsed(answer.body['url'])
    expect(channels).toMatchObject([
      { name: '', psk: Uint8Array.of(1) },
      { name: 'Rescue', psk: RESCUE_KEY },
    ])
    // The list of ignored nodes is nobody else's business.
    expect(lora).toMatchObject({ usePreset: true, region: 3, hopLimit: 3, ignoreIncoming: [] })
    expect(isAddOnly).toBe(false)
    expect(auditRows(service.app).at(-1)).toStrictEqual({
      action: 'channels_shared',
      username: 'admin',
      details: {
        source: service.source,
        channels: [
          { index: 0, name: '' },
          { index: 1, name: 'Rescue' },
        ],
        lora: true,
      },
    })
    expect(tracesIn([...service.lines, ...service.app.logged].join('\n'))).toStrictEqual([])
  })

  it('without those that were not named, and without LoRa settings unless asked', async () => {
    const service = await start(RADIO)
    const { body, text: said } = await service.ask('POST', `${CHANNELS}/share`, { channels: [0] })
    expect(parsed(body['url'])).toMatchObject({ channels: [{ name: '' }], lora: null })
    expect(tracesIn(said)).toStrictEqual([])
    const adding = await service.ask('POST', `${CHANNELS}/share`, { channels: [0], add: true, lora: true })
    expect(adding.body).toMatchObject({ url: 'https://meshtastic.org/e/?add=true#CgMSAQE', lora: false })
    expect(await service.ask('POST', `${CHANNELS}/share`, { channels: [5] })).toMatchObject({ status: 400 })
  })
})

describe('a user who may change settings', () => {
  const PERMISSIONS = { configuration: { read: true, write: true } }
  const scopeOf = (channels: Scope['channels']): Scope => ({ channels, direct: { read: false, write: false } })

  /** The radio's channels are stored with the next batch. */
  const untilStored = (service: ConfigService) =>
    until(() => {
      service.clock.advance(500)
      expect(service.store.sqlite.prepare('select identity from channels where channel_index = 1').get()).toMatchObject(
        {
          identity: expect.stringMatching(/:Rescue$/),
        },
      )
    })

  it('gets the keys of the channels that they may read, and of no other', async () => {
    const service = await start(RADIO)
    const anna = await service.app.user('anna', PERMISSIONS, scopeOf({ read: [0], write: [0] }))
    const ask = (path: string, body: object) => service.ask('POST', path, body, anna)
    await untilStored(service)
    expect((await ask(`${CHANNELS}/share`, { channels: [0] })).status).toBe(200)
    const hidden = await ask(`${CHANNELS}/share`, { channels: [1] })
    const both = await ask(`${CHANNELS}/share`, { channels: [0, 1] })
    for (const answer of [hidden, both]) {
      expect(answer).toMatchObject({ status: 400, body: { detail: 'The radio has no channel in slot 1' } })
    }
    const file = await ask(`${FILE}/export`, { secrets: ['channels'] })
    expect(file).toMatchObject({
      status: 403,
      body: { code: 'forbidden', detail: expect.stringMatching(/cannot export all channels/) },
    })
    expect(tracesIn([hidden, both, file].map(({ text: said }) => said).join())).toStrictEqual([])
    expect((await ask(`${FILE}/export`, { secrets: ['mqtt.password'] })).status).toBe(200)
  })

  it('gets no key of a slot whose channel has changed and is not stored yet', async () => {
    const service = await start(RADIO)
    const bert = await service.app.user('bert', PERMISSIONS, scopeOf({ read: [0, 1], write: [] }))
    const ask = (path: string, body: object) => service.ask('POST', path, body, bert)
    await untilStored(service)
    expect((await ask(`${CHANNELS}/share`, { channels: [0, 1] })).status).toBe(200)
    expect((await ask(`${FILE}/export`, { secrets: ['channels'] })).status).toBe(200)
    service.store.sqlite.exec(`update channels set identity = '1:Former' where channel_index = 1`)
    expect((await ask(`${CHANNELS}/share`, { channels: [1] })).status).toBe(400)
    expect((await ask(`${FILE}/export`, { secrets: ['channels'] })).status).toBe(403)
  })

  it('learns from no import whether they guessed the key of a channel that they may not read', async () => {
    const service = await start(RADIO)
    const dora = await service.app.user('dora', PERMISSIONS, scopeOf({ read: [0], write: [0] }))
    await untilStored(service)
    const told = async (path: string, guess: Uint8Array, more: object = {}) => {
      const channels = [channel('', Uint8Array.of(1)), channel('Rescue', guess)]
      const url = urlOf(channels, Object(more).mode === 'add')
      const body = path === FILE ? { yaml: `channel_url: ${url}` } : { url, ...more }
      const { status, text: said } = await service.ask('POST', `${path}/preview`, body, dora)
      const unconfirmed = { ...body, confirm: ['nothing'], ...(path === FILE ? { sections: ['channels'] } : {}) }
      const put = await service.ask('PUT', path, { ...unconfirmed, revisions: { channels: 'older' } }, dora)
      expect([status, put.status]).toStrictEqual([200, 409])
      return [said, { ...put.body, requestId: '' }]
    }
    for (const [path, more] of [
      [CHANNELS, { mode: 'replace' }],
      [CHANNELS, { mode: 'add' }],
      [FILE, {}],
    ] as const) {
      const [right, wrong] = [await told(path, RESCUE_KEY, more), await told(path, new Uint8Array(32).fill(2), more)]
      expect(right).toStrictEqual(wrong)
    }
    const url = urlOf([channel('', Uint8Array.of(1)), channel('Rescue', RESCUE_KEY)])
    const preview = async (client = service.admin) =>
      (await service.ask('POST', `${CHANNELS}/preview`, { url }, client)).body['slots']
    const slots = (change: string) => [
      { index: 0, change: 'kept' },
      { index: 1, change, name: 'Rescue' },
    ]
    expect([await preview(dora), await preview()]).toMatchObject([slots('replaced'), slots('changed')])
  })

  it('is offered the secrets that they may export', async () => {
    const service = await start(RADIO)
    await untilStored(service)
    const offered = async (read: Scope['channels'], name: string) => {
      const user = await service.app.user(name, PERMISSIONS, scopeOf(read))
      return Object((await service.ask('GET', FILE, undefined, user)).body)['leftOut']
    }
    const others = ['bluetooth.fixedPin', 'mqtt.password', 'network.wifiPsk']
    expect((await offered({ read: [0], write: [0] }, 'emil')).toSorted()).toStrictEqual(others)
    expect((await offered('all', 'fred')).toSorted()).toStrictEqual([
      'bluetooth.fixedPin',
      'channels',
      ...others.slice(1),
    ])
    const { leftOut } = Object((await service.ask('GET', FILE)).body)
    expect(leftOut).toContain('security.privateKey')
  })

  it('does not get the private key of the radio, which is for administrators', async () => {
    const service = await start(RADIO)
    const carl = await service.app.user('carl', PERMISSIONS, scopeOf('all'))
    const secrets = ['channels', 'security.privateKey']
    const refused = await service.ask('POST', `${FILE}/export`, { secrets }, carl)
    expect(refused).toMatchObject({
      status: 403,
      body: { code: 'forbidden', detail: expect.stringMatching(/^Only administrators/) },
    })
    expect(tracesIn(refused.text)).toStrictEqual([])
    expect(auditRows(service.app).map(({ action }) => action)).not.toContain('configuration_exported')
    expect((await service.ask('POST', `${FILE}/export`, { secrets: ['channels'] }, carl)).status).toBe(200)
    expect((await service.ask('POST', `${FILE}/export`, { secrets })).status).toBe(200)
  })
})

describe('channels of a URL', () => {
  it('are added to free slots; one that is there is skipped', async () => {
    const service = await start(RADIO)
    const url = urlOf([channel('Rescue', RESCUE_KEY), channel('Club', new Uint8Array(16).fill(3))], true)
    const preview = await service.ask('POST', `${CHANNELS}/preview`, { url })
    expect(preview.body).toMatchObject({
      mode: 'add',
      hasLora: false,
      confirm: [],
      slots: [
        { index: 2, change: 'added', name: 'Club', former: null },
        { index: null, change: 'skipped', name: 'Rescue' },
      ],
    })
    expect(service.device.admin).toStrictEqual([])
    const { status, body } = await service.ask('PUT', CHANNELS, { url })
    expect(status).toBe(202)
    expect(body['changes']).toMatchObject([{ section: 'channels', state: 'applying' }])
    expect(await outcomes(service, ['channels'])).toMatchObject([{ state: 'applied' }])
    expect(service.device.saved.channels.get(2)).toMatchObject({
      role: 2,
      settings: { name: 'Club', psk: new Uint8Array(16).fill(3) },
    })
    expect(service.device.saved.channels.get(1)).toMatchObject({ settings: { name: 'Rescue', psk: RESCUE_KEY } })
    expect(await service.ask('PUT', CHANNELS, { url })).toMatchObject({ status: 200, body: { changes: [] } })
  })

  it('replace all with LoRa settings, but only when what is lost is confirmed', async () => {
    const service = await start(RADIO)
    const url = urlOf([channel('New', new Uint8Array(32).fill(4))], false, {
      usePreset: true,
      modemPreset: 4,
      hopLimit: 3,
      txEnabled: true,
    })
    const asked = { url, lora: true }
    const preview = await service.ask('POST', `${CHANNELS}/preview`, asked)
    expect(preview.body).toMatchObject({
      mode: 'replace',
      hasLora: true,
      keepsRegion: true,
      confirm: ['channels', 'lora.modemPreset'],
      slots: [
        { index: 0, change: 'replaced', name: 'New', former: '' },
        { index: 1, change: 'removed', name: 'Rescue' },
      ],
    })
    const refused = await service.ask('PUT', CHANNELS, { ...asked, confirm: ['channels'] })
    expect(refused).toMatchObject({
      status: 409,
      body: { code: 'confirmation_required', confirm: ['lora.modemPreset'] },
    })
    expect(service.device.admin).toStrictEqual([])
    const confirm = ['channels', 'lora.modemPreset']
    expect((await service.ask('PUT', CHANNELS, { ...asked, confirm })).status).toBe(202)
    expect(await outcomes(service, ['channels', 'lora'])).toMatchObject([{ state: 'applied' }, { state: 'applied' }])
    // One edit, so one restart.
    expect(service.device.starts()).toBe(2)
    expect(
      service.device.admin.filter(({ payloadVariant }) => payloadVariant.case === 'commitEditSettings'),
    ).toHaveLength(1)
    expect(service.device.saved.channels.get(0)).toMatchObject({ role: 1, settings: { name: 'New' } })
    expect(service.device.saved.channels.get(1)).toMatchObject({
      role: 0,
      settings: { name: '', psk: new Uint8Array(0) },
    })
    // The region, the list of ignored nodes and what belongs to the hardware stay.
    expect(service.device.saved.configs.get('lora')?.payloadVariant.value).toMatchObject({
      region: 3,
      modemPreset: 4,
      ignoreIncoming: [77],
      paFanDisabled: true,
    })
    const audited = auditRows(service.app).filter(({ action }) => action === 'configuration_updated')
    expect(audited.map(({ details }) => Object(details).section)).toStrictEqual(['channels', 'lora'])
    expect(JSON.stringify(audited)).not.toContain(base64Encode(new Uint8Array(32).fill(4)).slice(0, 12))
    expect(tracesIn(JSON.stringify(audited))).toStrictEqual([])
  })

  it('without LoRa settings being asked for, change none', async () => {
    const service = await start(RADIO)
    const url = urlOf([channel('Club', Uint8Array.of(1))], false, { usePreset: true, modemPreset: 4 })
    const { body } = await service.ask('POST', `${CHANNELS}/preview`, { url, mode: 'add' })
    expect(body).toMatchObject({ mode: 'add', confirm: [], sections: [{ section: 'channels' }] })
  })

  it('named admin need a confirmation of their own', async () => {
    const service = await start(RADIO)
    const url = urlOf([channel('Admin', new Uint8Array(32).fill(6))], true)
    const refused = await service.ask('PUT', CHANNELS, { url })
    expect(refused).toMatchObject({ status: 409, body: { code: 'confirmation_required', confirm: ['admin'] } })
    expect((await service.ask('PUT', CHANNELS, { url, confirm: ['admin'] })).status).toBe(202)
  })

  it('that do not fit are refused in a sentence, and so is what is no URL of channels', async () => {
    const service = await start(RADIO)
    const seven = urlOf(
      Array.from({ length: 7 }, (_, at) => channel(`c${at}`, Uint8Array.of(1))),
      true,
    )
    for (const [url, detail] of [
      [seven, /^7 channels do not fit: the radio has 6 free slots/],
      ['https://example.org/e/#CgMSAQE', /another site/],
      ['https://meshtastic.org/e/#CgMS', /cannot be read/],
    ] as const) {
      const answer = await service.ask('POST', `${CHANNELS}/preview`, { url })
      expect(answer).toMatchObject({
        status: 400,
        body: { code: 'invalid_request', detail: expect.stringMatching(detail) },
      })
    }
  })

  it('are refused if the radio has changed since the preview', async () => {
    const service = await start(RADIO)
    const url = urlOf([channel('Club', Uint8Array.of(1))], true)
    const revisions = { channels: 'older' }
    expect(await service.ask('PUT', CHANNELS, { url, revisions })).toMatchObject({
      status: 409,
      body: { code: 'configuration_changed' },
    })
  })
})

/** example_config.yaml of Meshtastic's Python CLI: the same keys and values, in another order. */
const EXAMPLE = `
owner: Bob TBeam
owner_short: BOB
channel_url: https://www.meshtastic.org/e/#CgMSAQESCDgBQANIAVAe
canned_messages: Hi|Bye|Yes|No|Ok
ringtone: 24:d=32,o=5,b=565:f6,p
location: { lat: 35.88888, lon: -93.88888, alt: 304 }
config:
  bluetooth: { enabled: true, fixedPin: 123456 }
  device: { serialEnabled: true }
  display: { screenOnSecs: 600 }
  lora: { region: US, hopLimit: 3, txEnabled: true, txPower: 30 }
  network: { ntpServer: 0.pool.ntp.org }
  position: { gpsAttemptTime: 900, gpsEnabled: true, gpsUpdateInterval: 120, positionFlags: 3 }
module_config:
  telemetry: { deviceUpdateInterval: 1800, environmentUpdateInterval: 900 }
`

describe('a configuration file', () => {
  it('has all settings in the form of the CLI, and no secrets', async () => {
    const service = await start(RADIO)
    const { status, body, text: said } = await service.ask('GET', FILE)
    expect(status).toBe(200)
    expect(body['leftOut']).toStrictEqual([
      'channels',
      'network.wifiPsk',
      'bluetooth.fixedPin',
      'security.privateKey',
      'mqtt.password',
    ])
    const yaml = String(body['yaml'])
    expect(yaml.split('\n')[0]).toBe('# start of Meshtastic configure yaml')
    expect(yaml).toContain('owner: Test Radio\nowner_short: TR\n')
    expect(yaml).toMatch(/\n  lora:\n(?: {4}.*\n)*    region: EU_868\n/)
    expect(yaml).toContain('    positionFlags: 1027\n')
    expect(yaml).toContain(`      - base64:${base64Encode(new Uint8Array(32).fill(5))}\n`)
    expect(yaml).toMatch(/\nmodule_config:\n(?: {2}.*\n)*  telemetry:\n(?: {4}.*\n)*    deviceUpdateInterval: 900\n/)
    // With the private key of another radio, it would be the wrong one.
    expect(yaml).not.toMatch(/publicKey|privateKey|channel_url|wifiPsk|fixedPin|password/)
    expect(tracesIn(said)).toStrictEqual([])
    expect(auditRows(service.app).map(({ action }) => action)).not.toContain('configuration_exported')
  })

  it('has the secrets that are named, and no other; the audit log has their names', async () => {
    const service = await start(RADIO)
    const secrets = ['network.wifiPsk', 'channels']
    const { body } = await service.ask('POST', `${FILE}/export`, { secrets })
    expect(body['leftOut']).toStrictEqual(['bluetooth.fixedPin', 'security.privateKey', 'mqtt.password'])
    const yaml = String(body['yaml'])
    expect(yaml).toContain('wifiPsk: l3ak-wifi')
    const url = /\nchannel_url: (\S+)\n/.exec(yaml)?.[1]
    expect(parsed(url).channels).toMatchObject([{ name: '' }, { name: 'Rescue', psk: RESCUE_KEY }])
    expect(yaml).not.toMatch(/privateKey|fixedPin|password/)
    expect(auditRows(service.app).at(-1)).toStrictEqual({
      action: 'configuration_exported',
      username: 'admin',
      details: { source: service.source, secrets },
    })
    expect(tracesIn([...service.lines, ...service.app.logged].join('\n'))).toStrictEqual([])
    const unknown = await service.ask('POST', `${FILE}/export`, { secrets: ['security.publicKey'] })
    expect(unknown.status).toBe(400)
  })

  it('of the same radio changes nothing, with or without its secrets', async () => {
    const service = await start(RADIO)
    const plain = await service.ask('GET', FILE)
    const full = await service.ask('POST', `${FILE}/export`, { secrets: plain.body['leftOut'] })
    for (const { body } of [plain, full]) {
      const preview = await service.ask('POST', `${FILE}/preview`, { yaml: body['yaml'] })
      expect(preview).toMatchObject({ status: 200, body: { sections: [], confirm: [] } })
      expect(preview.body['leftOut']).toStrictEqual([])
    }
  })

  it('of the CLI is compared section by section, and each key that is not applied is named', async () => {
    const service = await start(RADIO)
    const { body, text: said } = await service.ask('POST', `${FILE}/preview`, { yaml: EXAMPLE })
    const sections = Object(body['sections'])
    expect(sections.map(({ section }: { section: string }) => section)).toStrictEqual([
      'owner',
      'channels',
      'position',
      'network',
      'lora',
      'bluetooth',
      'telemetry',
    ])
    const fieldsOf = (name: string) => sections.find(({ section }: { section: string }) => section === name).fields
    expect(fieldsOf('owner')).toStrictEqual([
      { path: 'longName', before: 'Test Radio', after: 'Bob TBeam', secret: false, risk: null },
      { path: 'shortName', before: 'TR', after: 'BOB', secret: false, risk: null },
    ])
    expect(fieldsOf('lora')).toStrictEqual([
      { path: 'region', before: 'EU_868', after: 'US', secret: false, risk: 'region' },
      { path: 'txPower', before: 0, after: 30, secret: false, risk: 'region' },
    ])
    expect(fieldsOf('bluetooth')).toStrictEqual([{ path: 'fixedPin', secret: true, risk: null }])
    expect(fieldsOf('telemetry')).toMatchObject([
      { path: 'deviceUpdateInterval', before: 900, after: 1800 },
      { path: 'environmentUpdateInterval', before: 0, after: 900 },
    ])
    expect(body['leftOut']).toStrictEqual([
      { key: 'canned_messages', why: 'elsewhere' },
      { key: 'ringtone', why: 'elsewhere' },
      { key: 'location', why: 'elsewhere' },
      { key: 'config.device.serialEnabled', why: 'unknown' },
      { key: 'config.display', why: 'unreported' },
      { key: 'config.position.gpsAttemptTime', why: 'unknown' },
      { key: 'config.position.gpsEnabled', why: 'unknown' },
      { key: 'channel_url', why: 'lora_of_url' },
    ])
    expect(body['confirm']).toStrictEqual(['channels', 'lora.region', 'lora.txPower'])
    expect(said).not.toContain('123456')
  })

  it('is applied in one edit, the chosen sections only, and each outcome is told', async () => {
    const service = await start(RADIO)
    service.device.manners.onSave = ({ owner }) => {
      owner.shortName = 'XX'
    }
    const sections = ['owner', 'lora', 'bluetooth']
    const missing = await service.ask('PUT', FILE, { yaml: EXAMPLE, sections, confirm: ['lora.region'] })
    expect(missing).toMatchObject({ status: 409, body: { confirm: ['lora.txPower'] } })
    const confirm = ['lora.region', 'lora.txPower']
    const begun = await service.ask('PUT', FILE, { yaml: EXAMPLE, sections, confirm })
    expect(begun.status).toBe(202)
    expect(Object(begun.body['changes']).map(({ section }: { section: string }) => section)).toStrictEqual([
      'owner',
      'lora',
      'bluetooth',
    ])
    expect(await outcomes(service, sections)).toMatchObject([
      { state: 'differs', differing: ['shortName'] },
      { state: 'applied' },
      { state: 'applied', fields: ['fixedPin'] },
    ])
    expect(service.device.starts()).toBe(2)
    expect(service.device.admin.map(({ payloadVariant }) => payloadVariant.case)).toStrictEqual([
      'beginEditSettings',
      'setOwner',
      'setConfig',
      'setConfig',
      'commitEditSettings',
    ])
    expect(service.device.saved.configs.get('bluetooth')?.payloadVariant.value).toMatchObject({ fixedPin: 123_456 })
    expect(service.device.saved.channels.get(1)).toMatchObject({ settings: { name: 'Rescue' } })
  })

  it('names what cannot be applied as it is, and refuses it', async () => {
    const service = await start(RADIO)
    const yaml = `module_config:\n  mqtt:\n    address: evil.example.org\nconfig:\n  lora:\n    hop_limit: 9\n  device:\n    role: NOBODY\n`
    const { body } = await service.ask('POST', `${FILE}/preview`, { yaml })
    expect(body['sections']).toMatchObject([
      { section: 'device', issues: [{ path: 'values.role', message: 'one of the options' }] },
      { section: 'lora', issues: [{ path: 'values.hopLimit', message: 'an integer from 0 to 7' }] },
      { section: 'mqtt', issues: [{ path: 'secrets.password' }] },
    ])
    // Otherwise the radio would send its password to another server.
    expect(await service.ask('PUT', FILE, { yaml, sections: ['mqtt'] })).toMatchObject({
      status: 409,
      body: { code: 'secret_required' },
    })
    expect(await service.ask('PUT', FILE, { yaml, sections: ['lora'] })).toMatchObject({ status: 400 })
    expect(service.device.admin).toStrictEqual([])
  })

  it.each([
    ['config:\n  security:\n    is_managed: true\n', [{ key: 'config.security.is_managed', why: 'managed' }]],
    [
      `config: {security: {publicKey: "base64:${base64Encode(new Uint8Array(32))}"}}`,
      [{ key: 'config.security.publicKey', why: 'derived' }],
    ],
    ['userPrefs:\n  region: 1\n', [{ key: 'userPrefs', why: 'unknown' }]],
    ['config: 5\n', [{ key: 'config', why: 'unknown' }]],
    ['config:\n  lora:\n    __proto__: {a: 1}\n', [{ key: 'config.lora.__proto__', why: 'unknown' }]],
  ])('leaves out %j and says so', async (yaml, leftOut) => {
    const service = await start(RADIO)
    expect((await service.ask('POST', `${FILE}/preview`, { yaml })).body).toMatchObject({ sections: [], leftOut })
  })

  it('spelled in other ways is understood as the CLI does', async () => {
    const service = await start(RADIO)
    const yaml = [
      'config:',
      '  lora: {tx_enabled: "no", modemPreset: 4}',
      '  position: {position_flags: "ALTITUDE, SPEED"}',
      '  network: {ipv4_config: {ip: 16777343}, ntp_server: pool.example.org}',
      `  security: {admin_key: ["0x${'07'.repeat(32)}"], serial_enabled: yes}`,
    ].join('\n')
    const { body } = await service.ask('POST', `${FILE}/preview`, { yaml })
    const after = Object(body['sections']).flatMap(({ fields }: { fields: { path: string; after: unknown }[] }) =>
      fields.map((field) => [field.path, field.after]),
    )
    expect(Object.fromEntries(after)).toStrictEqual({
      modemPreset: 'MEDIUM_FAST',
      txEnabled: false,
      positionFlags: ['ALTITUDE', 'SPEED', 'UNKNOWN_10'],
      'ipv4Config.ip': '127.0.0.1',
      ntpServer: 'pool.example.org',
      adminKey: [base64Encode(new Uint8Array(32).fill(7))],
      serialEnabled: true,
    })
  })

  it.each([
    ['a: [1', /line 1|line 2/],
    ['just a text', /no configuration/],
    ['- 1', /no configuration/],
    [`a: &a [1]\nb: [${'*a, '.repeat(60)}]`, /too often|nothing|refers/],
    [`config: {network: {wifiPsk: "l3ak-typed}}`, /line 1/],
  ])('that is none is refused in a sentence that repeats nothing of it: %s', async (yaml, detail) => {
    const service = await start(RADIO)
    const answer = await service.ask('POST', `${FILE}/preview`, { yaml })
    if (answer.status === 200) expect(yaml).toContain('*a')
    else expect(answer.body).toMatchObject({ code: 'invalid_request', detail: expect.stringMatching(detail) })
    expect(answer.text).not.toContain('l3ak')
  })
})

it('reading the configuration is not enough to learn or compare a secret', async () => {
  const service = await start(RADIO)
  const reader = await service.app.user('reader', { configuration: { read: true, write: false } })
  expect((await service.ask('GET', FILE, undefined, reader)).status).toBe(200)
  const url = urlOf([channel('Rescue', RESCUE_KEY)], true)
  for (const [method, path, body] of [
    ['POST', `${CHANNELS}/share`, { channels: [1] }],
    ['POST', `${CHANNELS}/preview`, { url }],
    ['PUT', CHANNELS, { url }],
    ['POST', `${FILE}/export`, { secrets: [] }],
    ['POST', `${FILE}/preview`, { yaml: EXAMPLE }],
    ['PUT', FILE, { yaml: EXAMPLE, sections: ['owner'] }],
  ] as const) {
    expect([path, (await service.ask(method, path, body, reader)).status]).toStrictEqual([path, 403])
  }
})
