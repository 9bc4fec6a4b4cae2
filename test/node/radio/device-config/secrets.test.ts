import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import { base64Encode } from '@bufbuild/protobuf/wire'
import { afterEach, expect, it } from 'vitest'
import { AdminMessageSchema } from '../../../../src/meshtastic/gen/admin_pb.ts'
import { Routing_Error } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../../src/meshtastic/gen/ports_pb.ts'
import { openBackups } from '../../../../src/node/backup/backups.ts'
import { backupOptions, makeDataDir } from '../../../support/backup/backup.ts'
import type { SettingsInit } from '../../../support/radio/config-device.ts'
import { auditRows } from '../../../support/app.ts'
import { type ConfigService, OWN, startConfigService } from '../../../support/radio/config-service.ts'
import { fromRadio } from '../../../support/radio/device.ts'
import { until } from '../../../support/radio/service.ts'

/** Every secret here contains this text. */
const MARK = 'l3ak-'
const bytes = (text: string) => new TextEncoder().encode(text)
const KEY = bytes('l3ak-private-key-of-32-bytes-abc')
const PSK = bytes('l3ak-channel-key-of-32-bytes-abc')
const NEW_PSK = bytes('l3ak-new-channel')
const NEW_KEY = bytes('l3ak-another-key-of-32-bytes-abc')
const PIN = 918_273
const NEW_PIN = '827364'

const SECRETS: SettingsInit = {
  owner: { longName: 'Test Radio', shortName: 'TR' },
  channels: [
    { index: 0, role: 1, settings: { psk: PSK } },
    { index: 1, role: 2, settings: { name: 'Rescue', psk: PSK } },
  ],
  configs: [
    { payloadVariant: { case: 'network', value: { wifiSsid: 'home', wifiPsk: 'l3ak-wifi' } } },
    { payloadVariant: { case: 'bluetooth', value: { enabled: true, fixedPin: PIN } } },
    { payloadVariant: { case: 'security', value: { privateKey: KEY, publicKey: new Uint8Array(32) } } },
  ],
  modules: [
    {
      payloadVariant: {
        case: 'mqtt',
        value: {
          address: 'mqtt.example.org',
          password: 'l3ak-mqtt',
          // A secret of newer firmware.
          $unknown: [{ no: 77, wireType: 2, data: Uint8Array.from([9, ...bytes('l3ak-next')]) }],
        },
      },
    },
  ],
}

const CHANGES: readonly (readonly [section: string, secrets: Record<string, string>])[] = [
  ['network', { wifiPsk: 'l3ak-new-wifi' }],
  ['mqtt', { password: 'l3ak-new-mqtt' }],
  ['bluetooth', { fixedPin: NEW_PIN }],
  ['security', { privateKey: base64Encode(NEW_KEY) }],
  ['channels', { 'channels.0.settings.psk': base64Encode(NEW_PSK), 'channels.1.settings.psk': base64Encode(NEW_PSK) }],
]

/** The mark in all possible encodings; base64 depends on where it begins. */
const TRACES = [
  MARK,
  Buffer.from(MARK).toString('hex'),
  Buffer.from(MARK).toString('base64').slice(0, 6),
  Buffer.from(`x${MARK}`).toString('base64').slice(2, 8),
  Buffer.from(`xx${MARK}`).toString('base64').slice(3, 9),
  Buffer.from(MARK).join(','),
  String(PIN),
  NEW_PIN,
]

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

it('never shows, logs, stores or backs up a secret, whatever is requested', async () => {
  const dir = makeDataDir()
  endings.push(dir.remove)
  const service = await startConfigService(SECRETS, { file: dir.database })
  endings.push(() => service.stop())
  const said: string[] = []
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await service.admin.send(method, path, body)
    const text = await answer.text()
    said.push(text)
    return answer.status
  }
  await readEverything(ask)
  expect(await askWrongly(ask)).toStrictEqual([400, 400, 400, 400, 400, 400, 409, 400, 404])
  await failInTheMiddle(service, ask)
  for (const [section, secrets] of CHANGES) {
    const confirm = Object.keys(secrets)
    expect([section, await ask('PUT', `/api/configuration/${section}`, { secrets, confirm })]).toStrictEqual([
      section,
      202,
    ])
    expect(await service.outcome(section, 500)).toMatchObject({ state: 'applied' })
    await service.untilConnected(500)
  }
  await hearSecrets(service)
  await readEverything(ask)
  const backups = openBackups(backupOptions(dir.dataDir, { now: () => service.clock.now() }))
  await backups.create('manual', async () => {})

  // The radio has all of them, so they could have been found.
  expect(service.device.saved.configs.get('security')?.payloadVariant.value).toMatchObject({ privateKey: NEW_KEY })
  expect(service.device.saved.configs.get('bluetooth')?.payloadVariant.value).toMatchObject({
    fixedPin: Number(NEW_PIN),
  })
  expect(service.device.saved.channels.get(0)?.settings?.psk).toStrictEqual(NEW_PSK)
  const received = Buffer.from(service.device.receivedBytes()).toString('latin1')
  expect(findTraces(received)).toContain(MARK)

  expect(said.join('')).toContain('Rescue')
  expect(findTraces(said.join('\n'))).toStrictEqual([])
  const lines = [...service.lines, ...service.app.logged]
  expect(lines.join('')).toContain('"level":"debug"')
  expect(findTraces(lines.join('\n'))).toStrictEqual([])
  const files = listFiles(dir.dataDir)
  expect(files.map((file) => file.split('/').at(-1))).toEqual(
    expect.arrayContaining(['mesh.db', 'mesh.db-wal', 'device_config.json', 'audit_log.json', 'packets.json']),
  )
  for (const file of files) {
    const content = readFileSync(file).toString('latin1')
    if (file.endsWith('device_config.json')) expect(content).toContain('wifiSsid')
    expect([file, findTraces(content)]).toStrictEqual([file, []])
  }
  // One entry for each change that was requested and recorded, including failed ones.
  const audited = auditRows(service.app).filter(({ action }) => action === 'configuration_updated')
  expect(audited.map(({ details }) => details['section'])).toStrictEqual([
    'mqtt',
    'mqtt',
    ...CHANGES.map(([name]) => name),
  ])
})

type Ask = (method: string, path: string, body?: object) => Promise<number>

async function readEverything(ask: Ask): Promise<void> {
  const sections = ['network', 'bluetooth', 'security', 'mqtt', 'channels', 'owner'].map(
    (each) => `configuration/${each}`,
  )
  const others = ['info', 'packets', 'channels', 'nodes', 'messages', 'dashboard', 'metrics', 'audit', 'openapi.json']
  for (const path of ['configuration', ...sections, ...others, 'audit/export?format=ndjson', 'neighbors']) {
    expect([path, await ask('GET', `/api/${path}`)]).toStrictEqual([path, 200])
  }
}

async function askWrongly(ask: Ask): Promise<number[]> {
  const wrong: [string, object][] = [
    ['network', { secrets: { wifiPsk: MARK.repeat(20) } }],
    ['network', { values: { wifiPsk: 'l3ak-1' } }],
    ['mqtt', { secrets: { password: { text: 'l3ak-2' } } }],
    ['channels', { secrets: { 'channels.0.settings.psk': 'l3ak-3' } }],
    ['channels', { values: { channels: [{ index: 0, settings: { psk: 'l3ak-4' } }] } }],
    ['security', { secrets: { privateKey: base64Encode(bytes('l3ak-5')) }, confirm: ['privateKey'] }],
    ['network', { secrets: { wifiPsk: 'l3ak-6' } }],
    ['bluetooth', { secrets: { fixedPin: `${PIN}0` } }],
    ['telemetry2', { secrets: { password: 'l3ak-7' } }],
  ]
  const statuses: number[] = []
  for (const [section, body] of wrong) statuses.push(await ask('PUT', `/api/configuration/${section}`, body))
  return statuses
}

/** A radio that refuses, and a database that does. */
async function failInTheMiddle(service: ConfigService, ask: Ask): Promise<void> {
  const body = { secrets: { password: 'l3ak-refused' } }
  service.device.manners.refuseWith = Routing_Error.BAD_REQUEST
  expect(await ask('PUT', '/api/configuration/mqtt', body)).toBe(202)
  expect(await service.outcome('mqtt')).toMatchObject({ state: 'failed' })
  // Once more in the middle: the radio restarts, and has the old one.
  Object.assign(service.device.manners, { takes: service.device.admin.length + 1, times: 2 })
  expect(await ask('PUT', '/api/configuration/mqtt', body)).toBe(202)
  expect(await service.outcome('mqtt', 500)).toMatchObject({ state: 'failed' })
  await service.untilConnected(500)
  expect(service.device.active.modules.get('mqtt')?.payloadVariant.value).toMatchObject({ password: 'l3ak-mqtt' })
  service.device.manners.refuseWith = null
  service.store.sqlite.exec('alter table device_config_changes rename to away')
  expect(await ask('PUT', '/api/configuration/mqtt', body)).toBe(500)
  service.store.sqlite.exec('alter table away rename to device_config_changes')
}

/** Secrets that a radio may send outside its settings: admin packets of others, its log, a notice. */
async function hearSecrets(service: ConfigService): Promise<void> {
  const admin = create(AdminMessageSchema, {
    payloadVariant: { case: 'getChannelResponse', value: { index: 0, settings: { psk: PSK } } },
    sessionPasskey: bytes('l3ak-ses'),
  })
  const data = { portnum: PortNum.ADMIN_APP, payload: toBinary(AdminMessageSchema, admin) }
  for (const from of [OWN, 0xa0cb0077]) {
    const value = { from, to: OWN, id: from >>> 8, payloadVariant: { case: 'decoded', value: data } } as const
    service.device.send(fromRadio({ case: 'packet', value }))
  }
  service.device.send(
    fromRadio({ case: 'logRecord', value: { message: 'psk l3ak-log', source: 'l3ak-source' } }),
    // Messages from a radio to users are shown: firmware puts no secret into them.
    fromRadio({ case: 'clientNotification', value: { message: 'The key is weak' } }),
  )
  await service.settle()
  await until(() => {
    service.clock.advance(100)
    const count = service.store.sqlite.prepare('select count(*) n from packets where port = 6').get()
    expect(count).toStrictEqual({ n: 2 })
  })
}

function findTraces(text: string): string[] {
  return TRACES.filter((trace) => text.includes(trace))
}

function listFiles(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((path) => statSync(path).isFile())
}
