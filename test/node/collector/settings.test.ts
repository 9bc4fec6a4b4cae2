import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLog } from '../../../src/app/base/log.ts'
import { parseConfig } from '../../../src/app/config/config.ts'
import { Config_LoRaConfig_RegionCode as RegionCode } from '../../../src/meshtastic/gen/config_pb.ts'
import { type Downlink, startDownlink } from '../../../src/node/collector/downlink.ts'
import type { NodeRadio } from '../../../src/node/radio/radio.ts'
import { DOWNLINK_SECTIONS, isKeptField } from '../../../src/shared/mesh/downlink.ts'
import { expireCommands } from '../../../src/app/mesh/downlink/commands.ts'
import { describeAll } from '../../../src/app/device-config/described.ts'
import { NO_SCOPE } from '../../../src/shared/access/scope.ts'
import { auditRows, type Client } from '../../support/app.ts'
import { type Commander, startCommander } from '../../support/radio/commanding.ts'
import type { SettingsInit } from '../../support/radio/config-device.ts'
import { type ConfigService, startConfigService } from '../../support/radio/config-service.ts'
import { until } from '../../support/radio/service.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
/** Every secret contains this text, or is the PIN. */
const MARK = 'l3ak-'
const PIN = 918_273
const PSK = bytes('l3ak-channel-key-of-32-bytes-abc')
const SETTINGS: SettingsInit = {
  owner: { longName: 'Test Radio', shortName: 'TR' },
  channels: [{ index: 0, role: 1, settings: { name: 'Rescue', psk: PSK } }],
  configs: [
    { payloadVariant: { case: 'device', value: { role: 2, tzdef: 'CET-1' } } },
    { payloadVariant: { case: 'lora', value: { usePreset: true, region: 3, hopLimit: 3, txEnabled: true } } },
    { payloadVariant: { case: 'network', value: { wifiSsid: 'home', wifiPsk: 'l3ak-wifi' } } },
    { payloadVariant: { case: 'bluetooth', value: { enabled: true, fixedPin: PIN } } },
    { payloadVariant: { case: 'security', value: { privateKey: PSK, publicKey: new Uint8Array(32) } } },
  ],
  modules: [
    { payloadVariant: { case: 'mqtt', value: { address: 'mqtt.example.org', password: 'l3ak-mqtt' } } },
    { payloadVariant: { case: 'meshBeacon', value: { broadcastOfferChannel: { name: 'Offer', psk: PSK } } } },
    { payloadVariant: { case: 'telemetry', value: { deviceUpdateInterval: 1800 } } },
  ],
}
/** The mark in all possible encodings; base64 depends on where it begins. */
const TRACES = [
  MARK,
  Buffer.from(MARK).toString('hex'),
  ...['', 'x', 'xx'].map((before) =>
    Buffer.from(before + MARK)
      .toString('base64')
      .slice(before.length + 1, 6),
  ),
  Buffer.from(MARK).join(','),
  String(PIN),
]

let commander: Commander
let hill: ConfigService
let downlink: Downlink
let tuner: Client
let source: string

beforeEach(async () => {
  commander = await startCommander()
  const collector = { COLLECTOR_TARGET_URL: commander.url, COLLECTOR_TOKEN: commander.token, COLLECTOR_NAME: 'hill' }
  hill = await startConfigService(SETTINGS, { radioEnv: collector })
  source = `hill/${hill.source}`
  downlink = listenFor('texts,settings')
  tuner = await commander.app.user('tuner', { configuration: { read: true, write: true } }, NO_SCOPE)
  await untilLater(async () => expect(await overview()).toMatchObject({ source, editable: true }))
})
afterEach(async () => {
  await downlink.stop()
  await hill.stop()
  await commander.stop()
})

/** The collector, with this in COLLECTOR_DOWNLINK. */
function listenFor(kinds: string, radio: NodeRadio = hill.radio): Downlink {
  const { clock, store } = hill
  const env = { COLLECTOR_TARGET_URL: commander.url, COLLECTOR_TOKEN: commander.token, COLLECTOR_NAME: 'hill' }
  const parsed = parseConfig({ ...env, COLLECTOR_DOWNLINK: kinds })
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const log = createLog({ level: 'debug', format: 'json', now: clock.now, write: (line) => hill.lines.push(line) })
  const needs = { config: parsed.config, store, log, radio, events: null, random: () => 0.5, monotonic: clock.now }
  return startDownlink(needs, clock)
}

async function untilLater(check: () => void | Promise<void>, stepMs = 100): Promise<void> {
  await until(async () => {
    hill.clock.advance(stepMs)
    commander.clock.advance(10)
    await check()
  })
}

const read = async (path = '') => Object(await (await tuner.send('GET', `/api/configuration${path}`)).json())
const overview = () => read()
async function put(section: string, body: object) {
  const answer = await tuner.send('PUT', `/api/configuration/${section}`, body)
  return { status: answer.status, body: Object(await answer.json()) }
}
const lastChange = async (section = 'lora') => (await read(`/${section}`)).lastChange
/** Until the change has ended, as its author sees it. */
const untilChange = (state: string, more: object = {}) =>
  untilLater(async () => expect(await lastChange()).toMatchObject({ state, ...more }), 500)
const lora = () => Object(hill.device.saved.configs.get('lora')?.payloadVariant.value)

it('shows and changes the sections without secrets, and tells what became of it; no secret leaves the collector', async () => {
  const known = await overview()
  expect(known).toMatchObject({ source, sources: [source], byCollector: true, editable: true })
  expect(known.sections.map((one: { section: string }) => one.section)).toStrictEqual([
    'device',
    'lora',
    'owner',
    'telemetry',
  ])
  const { revision, values, secrets } = await read('/lora')
  expect([values.hopLimit, secrets]).toStrictEqual([3, {}])
  const asked = await put('lora', { values: { hopLimit: 5 }, revision })
  expect([asked.status, asked.body.change]).toMatchObject([
    202,
    { state: 'waiting', by: 'tuner', fields: ['hopLimit'] },
  ])
  expect(await put('device', { values: { tzdef: 'UTC' } })).toMatchObject({
    status: 409,
    body: { code: 'configuration_change_in_progress' },
  })
  await untilChange('applied', { reason: null, differing: [] })
  expect([lora().hopLimit, hill.device.starts(), (await read('/lora')).values.hopLimit]).toStrictEqual([5, 2, 5])
  const details = { section: 'lora', before: { hopLimit: 3 }, after: { hopLimit: 5 }, secretsChanged: [] }
  expect(auditRows(commander.app).at(-1)).toMatchObject({ username: 'tuner', details: { source, ...details } })
  expect(auditRows(hill.app).at(-1)).toMatchObject({
    action: 'configuration_updated',
    username: 'system',
    details: { ...details, source: hill.source, askedBy: 'tuner', service: new URL(commander.url).host },
  })
  expect((await hill.read('lora'))['lastChange']).toMatchObject({ by: 'downlink:tuner', state: 'applied' })

  // What empties the keys of all channels, and what is wired, is shown and not changed.
  const { fields } = await read('/owner')
  expect(fields).toContainEqual(expect.objectContaining({ path: 'isLicensed', readOnly: true }))
  const licensed = { values: { isLicensed: true }, confirm: ['isLicensed'] }
  for (const answer of [await put('owner', licensed), await put('device', { values: { buzzerGpio: 4 } })]) {
    expect(answer).toMatchObject({ status: 400, body: { issues: [{ message: 'read-only' }] } })
  }
  expect(await put('lora', { values: { hopLimit: 5 } })).toStrictEqual({ status: 200, body: { change: null } })
  expect(await put('lora', { values: { hopLimit: 4 }, revision })).toMatchObject({
    body: { code: 'configuration_changed' },
  })
  expect(await put('lora', { values: { region: 'US', hopLimit: 0 }, confirm: ['hopLimit'] })).toMatchObject({
    status: 409,
    body: { code: 'confirmation_required', confirm: ['region'] },
  })
  for (const body of [{ values: { psk: 'x' } }, { secrets: { psk: 'x' } }, { values: { 'a.b': 1 } }]) {
    expect(await put('lora', body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  }
  for (const section of ['network', 'security', 'channels', 'mqtt', 'meshBeacon', 'bluetooth']) {
    expect(await put(section, { values: {} })).toMatchObject({ status: 404, body: { code: 'section_not_found' } })
  }
  // What the radio makes of it is told as it is, as here.
  hill.device.manners.onSave = (saved) => {
    Object.assign(Object(saved.configs.get('lora')?.payloadVariant.value), { region: RegionCode.EU_433 })
  }
  expect(await put('lora', { values: { region: 'US' }, confirm: ['region'] })).toMatchObject({ status: 202 })
  await untilChange('differs', { differing: ['region'] })
  hill.device.manners.onSave = null
  // The service there knows the field, but the value is checked here.
  expect(await put('lora', { values: { hopLimit: 99 } })).toMatchObject({ status: 202 })
  await untilChange('failed', { reason: expect.stringContaining('hopLimit') })

  const sent = commander.bodies.join('\n')
  expect(sent).toContain('/api/ingest/settings')
  expect(sent).toContain('Test Radio')
  expect(TRACES.filter((trace) => sent.includes(trace))).toStrictEqual([])
  const stored = JSON.stringify(commander.app.store.sqlite.prepare('select * from device_config').all())
  expect(TRACES.filter((trace) => stored.includes(trace))).toStrictEqual([])
})

it('changes nothing that was changed meanwhile, late, or twice, whoever is killed', async () => {
  let isShut = true
  commander.hook = (_step, path) => (isShut && path.endsWith('/settings') ? 'lost' : 'goes on')
  await hill.change('lora', { values: { hopLimit: 6 } })
  expect(await hill.outcome('lora', 500)).toMatchObject({ state: 'applied' })
  await hill.untilConnected(500)
  expect(await put('lora', { values: { hopLimit: 7 } })).toMatchObject({ status: 202 })
  await untilChange('failed', { reason: 'The section has changed since it was read' })
  isShut = false
  await untilLater(async () => expect((await read('/lora')).values.hopLimit).toBe(6), 1000)

  // The collector takes it, and ends before it begins.
  const sets = () => hill.device.admin.length
  const before = sets()
  let isTaken = false
  commander.hook = (step, path) => {
    if (step === 'answered' && path.endsWith('/take')) isTaken = true
    return isTaken ? 'lost' : 'goes on'
  }
  await put('lora', { values: { hopLimit: 4 } })
  await untilLater(() => expect(isTaken).toBe(true))
  await downlink.stop()
  commander.hook = () => 'goes on'
  expect(await lastChange()).toMatchObject({ state: 'applying' })
  downlink = listenFor('settings')
  await untilChange('failed', { reason: 'the collector of the radio did not begin it within a minute' })
  expect([sets(), lora().hopLimit]).toStrictEqual([before, 6])

  // It ends in the middle: what the radio has is not known, and the page says so.
  hill.device.manners.isMute = true
  await put('lora', { values: { hopLimit: 2 } })
  await untilLater(() => expect(sets()).toBeGreaterThan(before))
  await downlink.stop()
  hill.device.manners.isMute = false
  const radio = await hill.restart()
  downlink = listenFor('settings', radio)
  await untilChange('unknown', { reason: expect.stringContaining('the service was stopped') })
  await hill.untilConnected(500)
  expect(lora().hopLimit).toBe(6)

  // Nobody takes it.
  await downlink.stop()
  await put('lora', { values: { hopLimit: 1 } })
  commander.clock.advance(60_000)
  await expireCommands({ ...commander.app.ports, now: commander.clock.now })
  expect(await lastChange()).toMatchObject({
    state: 'failed',
    reason: 'the collector of the radio did not begin it within a minute',
  })
  const starts = hill.device.starts()
  downlink = listenFor('texts', radio)
  await untilLater(async () => expect((await overview()).sources).toStrictEqual([]))
  expect([lora().hopLimit, hill.device.starts()]).toStrictEqual([6, starts])
})

it('does nothing that a hostile service makes of it', async () => {
  const { sqlite } = commander.app.store
  const known = sqlite.prepare('select id from sources where name = ?').pluck().get(source)
  let n = 0
  const give = (content: unknown) => {
    n += 1
    const id = n.toString(16).padStart(32, '0')
    const at = commander.clock.now()
    sqlite
      .prepare(
        `insert into radio_commands (id, source_id, kind, content, asked_by, from_node_num, packet_id, created_at, expires_at)
          values (?, ?, 'settings', ?, 'mallory', 1, ?, ?, ?)`,
      )
      .run(id, known, JSON.stringify(content), n, at, at + 60_000)
  }
  const good = { section: 'lora', values: { hopLimit: 5 }, before: { hopLimit: 3 }, confirm: [] }
  const hostile: unknown[] = [
    { ...good, section: 'security', values: { isManaged: true }, before: { isManaged: false }, confirm: ['isManaged'] },
    { ...good, section: 'network', values: { wifiSsid: 'evil' }, before: { wifiSsid: 'home' }, confirm: ['wifiSsid'] },
    { ...good, section: 'channels', values: { channels: [] } },
    { ...good, section: 'serial', values: { enabled: true } },
    { section: 'owner', values: { isLicensed: true }, before: { isLicensed: false }, confirm: ['isLicensed'] },
    { section: 'owner', values: { isLicensed: false, shortName: 'X' }, before: { shortName: 'TR' }, confirm: [] },
    { section: 'device', values: { buzzerGpio: 4 }, before: { buzzerGpio: 0 }, confirm: [] },
    { ...good, secrets: { psk: 'x' } },
    { ...good, values: { hopLimit: 5, psk: 'x' } },
    { ...good, values: { region: 'US' }, before: { region: 'EU_868' } },
    { ...good, before: { hopLimit: 2 } },
    { ...good, before: {} },
    { ...good, values: { hopLimit: 'x'.repeat(5000) } },
    null,
  ]
  for (const content of hostile) give(content)
  const open = () => sqlite.prepare('select count(*) from radio_commands where ended_at is null').pluck().get()
  await untilLater(() => expect(open()).toBe(0), 500)
  expect(hill.device.admin).toStrictEqual([])
  // Each change restarts the radio: as many as that, and no more.
  for (let hops = 0; hops < 10; hops++) {
    give({ ...good, values: { hopLimit: (hops % 2) + 4 }, before: { hopLimit: hops === 0 ? 3 : 5 - (hops % 2) } })
    await untilLater(() => expect(open()).toBe(0), 500)
    await hill.untilConnected(500)
  }
  const begun = sqlite.prepare('select count(*) from radio_commands where claim is not null').pluck().get()
  expect([begun, hill.device.starts()]).toStrictEqual([6, expect.any(Number)])
  expect(hill.device.starts()).toBeLessThanOrEqual(7)
  const refused = auditRows(hill.app).filter(({ action }) => action === 'downlink_refused')
  expect(refused.length).toBeGreaterThan(0)
  expect(refused[0]).toMatchObject({ details: { askedBy: 'mallory', kind: 'settings' } })
})

it('has no section with a secret, or with bytes, which keys are, and keeps each field that names a pin', () => {
  const all = describeAll()
  const held = DOWNLINK_SECTIONS.filter(
    (section) => all[section]?.fields.some(({ secret, type }) => secret || type === 'bytes') !== false,
  )
  expect(held).toStrictEqual([])
  const paths = DOWNLINK_SECTIONS.flatMap((section) =>
    (all[section]?.fields ?? []).map(({ path }) => ({ section, path, isKept: isKeptField(section, path) })),
  )
  const wired = paths.filter(({ path }) => /gpio|pin(?!g)|^output(?!Ms)|address|i2s/i.test(path))
  expect(wired.filter(({ isKept }) => !isKept)).toStrictEqual([])
  // As many as are listed: each one is a field of the table.
  expect(paths.filter(({ isKept }) => isKept)).toHaveLength(23)
})
