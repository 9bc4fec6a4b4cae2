import { create } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import { AdminMessageSchema } from '../../../../src/meshtastic/gen/admin_pb.ts'
import { auditRows } from '../../../support/app.ts'
import { OWN, SETTINGS } from '../../../support/radio/config-service.ts'
import { REMOTE, REMOTE_KEY } from '../../../support/radio/remote-node.ts'
import {
  CHANNEL_SECRET,
  hear,
  MQTT_SECRET,
  OUR_KEY,
  PRIVATE_SECRET,
  type RemoteService,
  startRemoteService,
  WIFI_SECRET,
} from '../../../support/radio/remote-service.ts'
import { until } from '../../../support/radio/service.ts'

const running: RemoteService[] = []

async function start(...options: Parameters<typeof startRemoteService>): Promise<RemoteService> {
  const service = await startRemoteService(...options)
  running.push(service)
  return service
}

/** A service that administers the node, and has read this section. */
async function startRead(section: string): Promise<RemoteService> {
  const service = await start()
  await service.name()
  expect(await service.readOver(section)).toMatchObject({ state: 'done', reason: null })
  return service
}

afterEach(async () => {
  for (const each of running.splice(0)) await each.stop()
})

const cases = ({ node }: RemoteService) => node.admin.map(({ payloadVariant }) => payloadVariant.case)
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')

describe('a node', () => {
  it('is administered only after somebody named it as own', async () => {
    const service = await start()
    expect((await service.ask('GET', '/api/remote')).body).toStrictEqual({ nodes: [] })
    const path = `/api/remote/${REMOTE}`
    for (const [method, body] of [['GET'], ['POST', { action: 'read', section: 'lora' }]] as const) {
      expect(await service.ask(method, path, body)).toMatchObject({ status: 404, body: { code: 'node_not_found' } })
    }
    await service.name()
    expect(await service.overview()).toMatchObject({
      nodeNum: REMOTE,
      longName: 'Hill',
      keyState: 'trusted',
      source: service.source,
      problem: null,
      ownKey: base64(OUR_KEY),
      hops: { count: 1, isAssumed: false },
      modem: { preset: 'LONG_FAST', isAssumed: false },
    })
    expect(service.node.packets).toStrictEqual([])
    expect(auditRows(service.app).at(-1)).toMatchObject({ action: 'node_updated' })
    expect((await service.ask('PUT', path, { own: false })).body).toStrictEqual({ nodes: [] })
    expect((await service.ask('GET', path)).status).toBe(404)
  })

  it('that is connected to this service is not named', async () => {
    const service = await start()
    const answer = await service.ask('PUT', `/api/remote/${OWN}`, { own: true })
    expect([answer.status, answer.body['code']]).toStrictEqual([400, 'invalid_request'])
  })

  it('with another key than when it was named is not asked until it is named again', async () => {
    const service = await start()
    await service.name()
    hear(service, new Uint8Array(32).fill(66))
    expect(await service.overview()).toMatchObject({ keyState: 'changed', problem: expect.stringContaining('key') })
    const asked = await service.ask('POST', `/api/remote/${REMOTE}`, { action: 'read', section: 'lora' })
    expect([asked.status, asked.body['code']]).toStrictEqual([409, 'configuration_changed'])
    expect(service.node.packets).toStrictEqual([])
    await service.name()
    // Our radio still knows the earlier key, and refuses the packet.
    expect(await service.readOver('lora')).toMatchObject({ state: 'failed', reason: 'cannot_encrypt' })
  })

  it('that is hidden from a user does not exist for this user', async () => {
    const service = await start()
    await service.name()
    service.store.sqlite.exec(`update nodes set is_hidden = 1 where node_num = ${REMOTE}`)
    const both = { read: true, write: true }
    const user = await service.app.user('anna', { configuration: both, nodes: { read: true, write: false } })
    const path = `/api/remote/${REMOTE}`
    expect((await service.ask('GET', '/api/remote', undefined, user)).body).toStrictEqual({ nodes: [] })
    expect((await service.ask('GET', path, undefined, user)).status).toBe(404)
    expect((await service.ask('GET', `${path}/lora`, undefined, user)).status).toBe(404)
    expect((await service.ask('POST', path, { action: 'reboot', confirm: true }, user)).status).toBe(404)
    expect((await service.ask('PUT', path, { own: false }, user)).status).toBe(404)
  })
})

describe('a section', () => {
  it('is read on demand, encrypted for the node, and shown without secrets', async () => {
    const service = await start()
    await service.name()
    const before = Object((await service.overview())['sections'])
    const network = before.find(({ section }: { section: string }) => section === 'network')
    expect(network).toMatchObject({ readAt: null, readAirtime: { packets: 6 } })
    expect(network.readAirtime.ms).toBeGreaterThan(1000)
    expect(await service.readOver('network')).toMatchObject({ kind: 'read', state: 'done', by: 'admin' })
    expect(service.node.packets).toHaveLength(1)
    expect(service.node.packets[0]).toMatchObject({
      to: REMOTE,
      channel: 0,
      pkiEncrypted: true,
      publicKey: REMOTE_KEY,
      wantAck: true,
      hopLimit: 3,
      payloadVariant: { value: { wantResponse: true } },
    })
    expect(await service.section('network')).toMatchObject({
      nodeNum: REMOTE,
      editable: true,
      values: { wifiEnabled: true, wifiSsid: 'hut' },
      secrets: { wifiPsk: { isSet: true } },
      losses: { wifiSsid: 'network' },
      lastAction: { state: 'done' },
    })
    expect(service.states()).toStrictEqual(['sent', 'done'])
  })

  it('of channels is read channel by channel', async () => {
    const service = await startRead('channels')
    expect(service.node.packets).toHaveLength(8)
    const { values } = await service.section('channels')
    expect(Object(values).channels).toHaveLength(8)
  })

  it('that the firmware does not know is told', async () => {
    const service = await start()
    await service.name()
    expect(await service.readOver('audio')).toMatchObject({ state: 'refused', reason: 'unknown_section' })
    expect((await service.ask('GET', `/api/remote/${REMOTE}/audio`)).status).toBe(404)
  })

  it.each([
    ['no admin key', { isAdmin: false }, 'refused', 'not_admin'],
    ['it does not know us', { knowsUs: false }, 'refused', 'unknown_key'],
    ['locked', { isLocked: true }, 'refused', 'no_response'],
    ['every packet lost', { losesNext: 99 }, 'timed_out', 'silent'],
  ])('is not read: %s', async (_why, manners, state, reason) => {
    const service = await start()
    await service.name()
    Object.assign(service.node.manners, manners)
    expect(await service.readOver('lora')).toMatchObject({ state, reason })
    expect((await service.ask('GET', `/api/remote/${REMOTE}/lora`)).status).toBe(404)
  })

  it('is asked for again when a packet is lost', async () => {
    const service = await start()
    await service.name()
    service.node.manners.losesNext = 1
    expect(await service.readOver('lora')).toMatchObject({ state: 'done' })
    expect(service.node.packets).toHaveLength(2)
  })

  it('is not believed from somebody who only uses the number of the node', async () => {
    const service = await start()
    await service.name()
    service.node.manners.losesNext = 99
    await service.ask('POST', `/api/remote/${REMOTE}`, { action: 'read', section: 'owner' })
    await until(() => expect(service.node.packets).toHaveLength(1))
    const forged = create(AdminMessageSchema, {
      payloadVariant: { case: 'getOwnerResponse', value: { longName: 'Forged' } },
    })
    service.node.forge(service.node.packets[0]?.id ?? 0, forged)
    expect(await service.ended()).toMatchObject({ state: 'timed_out', reason: 'silent' })
    expect((await service.ask('GET', `/api/remote/${REMOTE}/owner`)).status).toBe(404)
  })
})

describe('a change', () => {
  const CHANGE = { values: { positionBroadcastSecs: 1800 } }
  const positionOf = (settings: RemoteService['node']['saved']) =>
    Object(settings.configs.get('position')?.payloadVariant.value)

  it('is made as one edit, verified after the restart, and recorded without secrets', async () => {
    const service = await startRead('position')
    const { changeAirtime } = await service.section('position')
    expect(Object(changeAirtime).ms).toBeGreaterThan(1000)
    expect(await service.changeOver('position', CHANGE)).toMatchObject({
      kind: 'change',
      section: 'position',
      state: 'applied',
      reason: null,
      fields: ['positionBroadcastSecs'],
      before: { positionBroadcastSecs: 900 },
    })
    expect(cases(service)).toStrictEqual([
      'getConfigRequest',
      'getConfigRequest',
      'beginEditSettings',
      'setConfig',
      'getConfigRequest',
      'commitEditSettings',
      'getConfigRequest',
    ])
    expect(service.node.starts()).toBe(2)
    expect(positionOf(service.node.saved)).toMatchObject({ positionBroadcastSecs: 1800, gpsMode: 1 })
    expect((await service.section('position'))['values']).toMatchObject({ positionBroadcastSecs: 1800 })
    expect(service.states().slice(2)).toStrictEqual(['waiting_for_key', 'sent', 'restarting', 'applied'])
    const entry = auditRows(service.app).findLast(({ action }) => action === 'configuration_updated')
    expect(Object(entry).details).toMatchObject({
      nodeNum: REMOTE,
      section: 'position',
      before: { positionBroadcastSecs: 900 },
      after: { positionBroadcastSecs: 1800 },
    })
  })

  it('can be put back with what was there before', async () => {
    const service = await startRead('position')
    await service.changeOver('position', CHANGE)
    const { lastChange } = await service.section('position')
    expect(await service.changeOver('position', { values: Object(lastChange).before })).toMatchObject({
      state: 'applied',
    })
    expect(positionOf(service.node.saved)).toMatchObject({ positionBroadcastSecs: 900 })
  })

  it('of one channel asks for that one alone, and keeps its key', async () => {
    const service = await startRead('channels')
    const { length } = service.node.packets
    const values = { channels: [{ index: 1, settings: { name: 'Rescue 2' } }] }
    expect(await service.changeOver('channels', { values, confirm: ['channels.1.settings.name'] })).toMatchObject({
      state: 'applied',
      before: { channels: [{ index: 1, settings: { name: 'Rescue' } }] },
    })
    expect(service.node.packets.length - length).toBe(6)
    expect(service.node.saved.channels.get(1)?.settings).toMatchObject({ name: 'Rescue 2', psk: CHANNEL_SECRET })
    expect(Object((await service.section('channels'))['values']).channels).toHaveLength(8)
  })

  it('keeps a password that was not shown', async () => {
    const service = await startRead('mqtt')
    await service.changeOver('mqtt', { values: { root: 'msh/EU' } })
    expect(service.node.saved.modules.get('mqtt')?.payloadVariant.value).toMatchObject({
      root: 'msh/EU',
      password: MQTT_SECRET,
    })
  })

  it('of nothing but a password cannot be verified, and says so', async () => {
    const service = await startRead('mqtt')
    expect(await service.changeOver('mqtt', { secrets: { password: 'another secret' } })).toMatchObject({
      state: 'unverified',
      reason: 'unreadable',
    })
    expect(service.node.saved.modules.get('mqtt')?.payloadVariant.value).toMatchObject({ password: 'another secret' })
  })

  it('after the session was renewed by somebody else is begun once more', async () => {
    const service = await startRead('position')
    let isRenewed = false
    service.node.manners.loses = ({ payloadVariant }) => {
      if (payloadVariant.case === 'beginEditSettings' && !isRenewed) {
        isRenewed = true
        service.node.renewSession()
      }
      return false
    }
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'applied' })
    expect(cases(service).filter((each) => each === 'setConfig')).toHaveLength(1)
  })

  it('of a password after the session was renewed is begun once more, too', async () => {
    const service = await startRead('mqtt')
    let isRenewed = false
    service.node.manners.loses = ({ payloadVariant }) => {
      if (payloadVariant.case === 'beginEditSettings' && !isRenewed) {
        isRenewed = true
        service.node.renewSession()
      }
      return false
    }
    await service.changeOver('mqtt', { secrets: { password: 'another secret' } })
    expect(service.node.saved.modules.get('mqtt')?.payloadVariant.value).toMatchObject({ password: 'another secret' })
  })

  it('whose session is renewed again and again is refused', async () => {
    const service = await startRead('position')
    service.node.manners.loses = ({ payloadVariant }) => {
      if (payloadVariant.case === 'beginEditSettings') service.node.renewSession()
      return false
    }
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'refused', reason: 'bad_session' })
    expect(positionOf(service.node.active)).toMatchObject({ positionBroadcastSecs: 900 })
  })

  it('that the node does not take is undone by a restart', async () => {
    const service = await startRead('position')
    service.node.manners.ignoresSets = true
    expect(await service.changeOver('position', CHANGE)).toMatchObject({
      state: 'refused',
      reason: 'not_taken',
      differing: ['positionBroadcastSecs'],
    })
    service.clock.advance(60_000)
    expect([service.node.isEditing(), service.node.starts()]).toStrictEqual([false, 2])
  })

  it('of a section that was changed at the node meanwhile sends nothing', async () => {
    const service = await startRead('position')
    service.node.edit(({ configs }) => {
      positionOf({ ...service.node.saved, configs }).gpsMode = 0
    })
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'failed', reason: 'other_values' })
    expect(cases(service)).toStrictEqual(['getConfigRequest', 'getConfigRequest'])
  })

  it('without an admin key is refused before anything is sent', async () => {
    const service = await startRead('position')
    service.node.manners.isAdmin = false
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'refused', reason: 'not_admin' })
    expect(positionOf(service.node.active)).toMatchObject({ positionBroadcastSecs: 900 })
  })

  it('interrupted by silence is undone, or said to be open', async () => {
    const service = await startRead('position')
    service.node.manners.loses = ({ payloadVariant }) => payloadVariant.case === 'setConfig'
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'timed_out', reason: 'silent_midway' })
    service.clock.advance(60_000)
    expect(service.node.isEditing()).toBe(false)
    await service.readOver('position')
    service.node.manners.loses = ({ payloadVariant }) =>
      payloadVariant.case === 'setConfig' || payloadVariant.case === 'rebootSeconds'
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'timed_out', reason: 'midway_open' })
    expect(service.node.isEditing()).toBe(true)
  })

  it('after which the node is gone is lost', async () => {
    const service = await startRead('position')
    service.node.manners.isGoneAfterRestart = true
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'lost', reason: 'not_back' })
    // What it had in its memory before it was told to save is not what it has now, as far as is known.
    expect((await service.section('position'))['values']).toMatchObject({ positionBroadcastSecs: 900 })
  })

  it('whose saving was not heard is told to save again', async () => {
    const service = await startRead('position')
    let losses = 2
    service.node.manners.loses = ({ payloadVariant }) => payloadVariant.case === 'commitEditSettings' && losses-- > 0
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'applied' })
    expect(positionOf(service.node.saved)).toMatchObject({ positionBroadcastSecs: 1800 })
  })

  it('without a restart is not verified', async () => {
    const service = await startRead('position')
    service.node.manners.staysUp = true
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'unverified', reason: 'no_restart' })
  })

  it('that the node corrects comes back with other values', async () => {
    const service = await startRead('position')
    service.node.manners.onSave = (settings) => {
      positionOf(settings).positionBroadcastSecs = 3600
    }
    expect(await service.changeOver('position', CHANGE)).toMatchObject({
      state: 'differs',
      differing: ['positionBroadcastSecs'],
    })
  })

  it('after which we are no administrator is not verified', async () => {
    const service = await startRead('security')
    service.node.manners.onSave = () => {
      service.node.manners.isAdmin = false
    }
    const adminKey = [base64(new Uint8Array(32).fill(9))]
    const change = { values: { adminKey }, confirm: ['adminKey'], accept: ['adminKey'] }
    expect(await service.changeOver('security', change)).toMatchObject({ state: 'unverified', reason: 'not_admin' })
  })

  it.each([
    ['lora', { region: 'US' }, ['region']],
    ['lora', { hopLimit: 0 }, ['hopLimit']],
    ['lora', { txEnabled: false }, ['txEnabled']],
    ['device', { role: 'ROUTER_LATE' }, ['role']],
    ['power', { isPowerSaving: true }, ['isPowerSaving']],
    ['network', { wifiEnabled: false }, ['wifiEnabled']],
  ])('of %s to %j can lose the node, and is confirmed twice', async (section, values, paths) => {
    const service = await startRead(section)
    const { length } = service.node.packets
    for (const body of [{ values }, { values, confirm: paths }, { values, accept: paths }]) {
      const { status, body: problem } = await service.put(section, body)
      expect([status, problem['code'], problem['confirm']]).toStrictEqual([409, 'confirmation_required', paths])
    }
    expect(service.node.packets).toHaveLength(length)
    expect((await service.put(section, { values, confirm: paths, accept: paths })).status).toBe(202)
    await service.ended()
  })

  it('of security is not sent to firmware before 2.8, which would need the private key', async () => {
    const service = await start()
    service.node.manners.firmware = '2.7.15.567b8ea'
    await service.name()
    expect(await service.readOver('security')).toMatchObject({ state: 'done' })
    const values = { debugLogApiEnabled: true }
    const answer = await service.put('security', { values })
    expect([answer.status, answer.text]).toStrictEqual([400, expect.stringContaining('2.7.15.567b8ea')])
    await service.readOver('position')
    expect(await service.changeOver('position', CHANGE)).toMatchObject({ state: 'applied' })
  })

  it('of security to 2.8 leaves the private key where it is, and never sets one', async () => {
    const service = await startRead('security')
    const key = await service.put('security', { secrets: { privateKey: base64(OUR_KEY) }, confirm: ['privateKey'] })
    expect(key.status).toBe(400)
    expect(await service.changeOver('security', { values: { debugLogApiEnabled: true } })).toMatchObject({
      state: 'applied',
    })
    expect(service.node.saved.configs.get('security')?.payloadVariant.value).toMatchObject({
      privateKey: PRIVATE_SECRET,
      debugLogApiEnabled: true,
    })
  })

  it('is refused while another one is under way, for two administrators at the same instant', async () => {
    const service = await startRead('position')
    const answers = await Promise.all([service.put('position', CHANGE), service.put('position', CHANGE)])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toStrictEqual([202, 409])
    expect(answers.find(({ status }) => status === 409)?.body['code']).toBe('configuration_change_in_progress')
    expect(await service.ended()).toMatchObject({ state: 'applied' })
    expect(cases(service).filter((each) => each === 'setConfig')).toHaveLength(1)
  })

  it('of a section that this process has not read is refused', async () => {
    const service = await startRead('position')
    await service.restart()
    await service.untilConnected()
    expect(await service.section('position')).toMatchObject({ editable: false, revision: null })
    expect(await service.put('position', CHANGE)).toMatchObject({
      status: 409,
      body: { code: 'configuration_changed' },
    })
  })
})

describe('a node without a known key', () => {
  const withoutKey = ({ store }: RemoteService) =>
    store.sqlite.exec(`update nodes set public_key = null where node_num = ${REMOTE}`)

  it('is not named while our radio has no admin channel', async () => {
    const service = await start()
    withoutKey(service)
    const answer = await service.ask('PUT', `/api/remote/${REMOTE}`, { own: true })
    expect([answer.status, answer.body['code']]).toStrictEqual([503, 'radio_unavailable'])
  })

  it('is reached on the admin channel if our radio has one switched on', async () => {
    const security = { publicKey: OUR_KEY, privateKey: OUR_KEY, adminChannelEnabled: true }
    const service = await start(
      {},
      {
        ...SETTINGS,
        channels: [...(SETTINGS.channels ?? []), { index: 3, role: 2, settings: { name: 'Admin', psk: OUR_KEY } }],
        configs: [...(SETTINGS.configs ?? []), { payloadVariant: { case: 'security', value: security } }],
      },
    )
    withoutKey(service)
    service.node.manners.adminChannel = 3
    await service.name()
    expect(await service.overview()).toMatchObject({ keyState: 'none', problem: null })
    expect(await service.readOver('position')).toMatchObject({ state: 'done' })
    expect(service.node.packets[0]).toMatchObject({ channel: 3, pkiEncrypted: false })
    expect(await service.changeOver('position', { values: { positionBroadcastSecs: 1800 } })).toMatchObject({
      state: 'applied',
    })
    service.node.manners.adminChannel = null
    expect(await service.readOver('position')).toMatchObject({ state: 'refused', reason: 'not_authorized' })
  })
})

describe('our own radio', () => {
  it('that is lost before the change is begun changes nothing, and says so', async () => {
    const service = await startRead('position')
    service.node.manners.loses = ({ payloadVariant }) => {
      if (payloadVariant.case === 'getConfigRequest') service.device.refuse(true)
      return false
    }
    await service.put('position', { values: { positionBroadcastSecs: 1800 } })
    await until(() => {
      service.clock.advance(100)
      expect(service.node.packets).toHaveLength(2)
    })
    service.device.kick()
    const outcome = await service.ended()
    expect(outcome).toMatchObject({ state: expect.stringMatching(/^(?:failed|timed_out)$/) })
    expect(outcome['reason']).toMatch(/^(?:radio_unavailable|silent)$/)
    expect(cases(service)).not.toContain('beginEditSettings')
  })

  it('sends what users say before what is changed at nodes', async () => {
    const service = await startRead('position')
    await service.put('position', { values: { positionBroadcastSecs: 1800 } })
    await until(() => {
      service.clock.advance(100)
      expect(service.node.packets).toHaveLength(2)
    })
    const before = service.device.packets.length
    // The next step waits for its pace; a text does not wait for it.
    const sent = await service.ask('POST', '/api/messages', { text: 'first' })
    expect(sent.status).toBe(202)
    await until(() => expect(service.device.packets.length).toBeGreaterThan(before))
    expect(service.device.packets[before]).toMatchObject({ payloadVariant: { value: { portnum: 1 } } })
    expect(await service.ended()).toMatchObject({ state: 'applied' })
  })
})

describe('when the service is stopped', () => {
  it.each([
    ['before it was begun', 'getConfigRequest', 'failed', 'stopped_before'],
    ['after it was begun', 'setConfig', 'unverified', 'stopped_midway'],
  ])('%s, the next one says so', async (_when, at, state, reason) => {
    const service = await startRead('position')
    service.node.manners.loses = ({ payloadVariant }) => payloadVariant.case === at
    const { length } = service.node.packets
    await service.put('position', { values: { positionBroadcastSecs: 1800 } })
    await until(() => {
      service.clock.advance(100)
      expect(service.node.packets.length - length).toBeGreaterThanOrEqual(at === 'setConfig' ? 3 : 1)
    })
    await service.restart()
    await until(async () => {
      expect((await service.overview())['lastAction']).toMatchObject({ state, reason, settledAt: expect.any(Number) })
    })
  })
})

describe('a restart', () => {
  const ask = (service: RemoteService, body: object) => service.ask('POST', `/api/remote/${REMOTE}`, body)

  it('needs its confirmation, and is verified', async () => {
    const service = await start()
    await service.name()
    expect((await ask(service, { action: 'reboot' })).status).toBe(400)
    expect((await ask(service, { action: 'reboot', confirm: true })).status).toBe(202)
    expect(await service.ended()).toMatchObject({ kind: 'reboot', section: null, state: 'done' })
    expect(service.node.starts()).toBe(2)
  })

  it('after which the node is gone is lost', async () => {
    const service = await start()
    await service.name()
    service.node.manners.isGoneAfterRestart = true
    await ask(service, { action: 'reboot', confirm: true })
    expect(await service.ended()).toMatchObject({ state: 'lost', reason: 'not_back' })
  })
})

it('secrets are in no answer, log, table or audit entry', async () => {
  const service = await start()
  service.node.manners.firmware = '2.7.15.567b8ea'
  await service.name()
  const texts: string[] = []
  for (const section of ['network', 'mqtt', 'security', 'channels']) {
    expect(await service.readOver(section)).toMatchObject({ state: 'done' })
    texts.push(JSON.stringify(await service.section(section)))
  }
  await service.changeOver('network', {
    values: { ntpServer: 'ntp.example.org' },
    secrets: { wifiPsk: 'a new wifi secret' },
    confirm: ['wifiPsk'],
    accept: ['wifiPsk'],
  })
  texts.push(JSON.stringify(await service.overview()), ...service.lines, ...service.app.logged)
  for (const table of ['remote_nodes', 'remote_sections', 'remote_actions', 'audit_log', 'packets', 'device_config']) {
    texts.push(JSON.stringify(service.store.sqlite.prepare(`select * from ${table}`).all()))
  }
  const all = texts.join('\n')
  const secrets = [WIFI_SECRET, MQTT_SECRET, 'a new wifi secret', base64(PRIVATE_SECRET), base64(CHANNEL_SECRET)]
  for (const secret of secrets) expect(all.includes(secret)).toBe(false)
  expect(all).toContain('hut')
})
