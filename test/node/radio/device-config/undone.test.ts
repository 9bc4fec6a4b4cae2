import { afterEach, describe, expect, it } from 'vitest'
import { Routing_Error } from '../../../../src/meshtastic/gen/payloads_pb.ts'
import { auditRows } from '../../../support/app.ts'
import { startConfigDevice } from '../../../support/radio/config-device.ts'
import { CHANNEL_KEY, type ConfigService, start, stopServices } from '../../../support/radio/config-service.ts'
import { until } from '../../../support/radio/service.ts'

afterEach(stopServices)

type Manners = ConfigService['device']['manners']

/** Two channels in one edit: begin, set, set, commit. */
const TWO_PARTS = {
  values: {
    channels: [
      { index: 1, settings: { name: 'Rescue 2' } },
      { index: 2, role: 'SECONDARY', settings: { name: 'New' } },
    ],
  },
  confirm: ['channels.1.settings.name', 'channels.2.role', 'channels.2.settings.name'],
}

async function begin(manners: Partial<Manners>): Promise<ConfigService> {
  const service = await start()
  Object.assign(service.device.manners, manners)
  await service.change('channels', TWO_PARTS)
  return service
}

/** Advances time once the radio has received that many messages and its answers have arrived. */
async function passAfter(service: ConfigService, steps: number, ms: number): Promise<void> {
  await until(() => expect(service.device.admin).toHaveLength(steps))
  await service.settle()
  service.clock.advance(ms)
}

const ANSWER_MS = 15_000
const HANG_UP_MS = 60_000

const stepsOf = (service: ConfigService) => service.device.admin.map(({ payloadVariant }) => payloadVariant.case)

/** The radio, its saved settings and the service agree that nothing has changed, and no edit is open. */
async function expectNothingChanged(service: ConfigService): Promise<void> {
  const { device } = service
  await service.untilConnected(500)
  for (const settings of [device.active, device.saved]) {
    expect(settings.channels.get(1)?.settings).toMatchObject({ name: 'Rescue', psk: CHANNEL_KEY })
    expect(settings.channels.get(2)).toMatchObject({ role: 0 })
  }
  expect(device.isEditing()).toBe(false)
  const stored = service.store.sqlite.prepare('select "values" from device_config where section = \'channels\'').get()
  for (const { channels } of [Object((await service.read('channels'))['values']), JSON.parse(Object(stored).values)]) {
    expect(channels).toMatchObject([{ role: 'PRIMARY' }, { settings: { name: 'Rescue' } }, { role: 'DISABLED' }])
  }
}

async function expectWorks(service: ConfigService): Promise<void> {
  Object.assign(service.device.manners, { refuseWith: null, isMute: false, hangsUpMidway: false, ignoresCommit: false })
  await service.change('channels', TWO_PARTS)
  expect(await service.outcome('channels', 500)).toMatchObject({ state: 'applied' })
}

describe('an edit that was begun ends with a restart that saves nothing, after', () => {
  const REFUSED = 'the radio refused it: BAD_REQUEST'
  const SILENT = 'the radio stopped answering before it was told to save'
  it.each<[string, Partial<Manners>, string, number]>([
    ['the first part was refused', { refuseWith: Routing_Error.BAD_REQUEST, takes: 1 }, REFUSED, 2],
    ['the second part was refused', { refuseWith: Routing_Error.BAD_REQUEST, takes: 2 }, REFUSED, 3],
    ['the saving was refused', { refuseWith: Routing_Error.BAD_REQUEST, takes: 3 }, REFUSED, 4],
    ['the first part was not answered', { isMute: true, takes: 1 }, SILENT, 2],
    ['the second part was not answered', { isMute: true, takes: 2 }, SILENT, 3],
  ])('%s', async (_what, manners, why, steps) => {
    const service = await begin({ ...manners, times: 1 })
    if (manners.isMute === true) await passAfter(service, steps, ANSWER_MS)
    expect(await service.outcome('channels', 500)).toMatchObject({
      state: 'failed',
      reason: `${why}; it has restarted, with its old values`,
      differing: [],
    })
    const all = ['beginEditSettings', 'setChannel', 'setChannel', 'commitEditSettings']
    expect(stepsOf(service)).toStrictEqual([...all.slice(0, steps), 'rebootSeconds'])
    expect(service.device.starts()).toBe(2)
    await expectNothingChanged(service)
    const recorded = auditRows(service.app).filter(({ action }) => action === 'configuration_updated')
    expect(recorded).toHaveLength(1)
    await expectWorks(service)
  })

  it('a broker could not be reached for a minute', async () => {
    const service = await start()
    Object.assign(service.device.manners, { isMute: true, takes: 1, times: 1 })
    await service.change('mqtt', { values: { root: 'msh/EU' } })
    await until(() => expect(service.device.admin).toHaveLength(2))
    service.clock.advance(59_999)
    await service.settle()
    expect(stepsOf(service)).toStrictEqual(['beginEditSettings', 'setModuleConfig'])
    service.clock.advance(1)
    await until(() => expect(stepsOf(service).at(-1)).toBe('rebootSeconds'))
    expect(await service.outcome('mqtt', 500)).toMatchObject({
      state: 'failed',
      reason: `${SILENT}; it has restarted, with its old values`,
    })
  })

  it('the link was lost in the middle', async () => {
    const service = await begin({ hangsUpMidway: true })
    expect(await service.outcome('channels', 500)).toMatchObject({
      state: 'failed',
      reason: 'the connection broke before the radio was told to save; it has restarted, with its old values',
    })
    expect(stepsOf(service)).toStrictEqual(['beginEditSettings', 'setChannel', 'rebootSeconds'])
    await expectNothingChanged(service)
    await expectWorks(service)
  })

  it('the radio was told to save, and did not restart', async () => {
    const service = await begin({ ignoresCommit: true })
    await passAfter(service, 4, HANG_UP_MS)
    expect(await service.outcome('channels', 500)).toMatchObject({
      state: 'failed',
      reason: 'the radio did not restart after it was told to save; it has restarted, with its old values',
    })
    await expectNothingChanged(service)
    await expectWorks(service)
  })

  it('the radio hung up silently, which it may have done to save', async () => {
    const service = await begin({ answersCommit: false, countsStarts: false })
    expect(await service.outcome('channels', 500)).toMatchObject({ state: 'applied', reason: null })
    expect(service.device.starts()).toBe(3)
    expect(service.device.saved.channels.get(1)?.settings).toMatchObject({ name: 'Rescue 2', psk: CHANNEL_KEY })
  })
})

describe('a radio that also fails to restart', () => {
  it('is reported to be in the middle of an edit if it refused', async () => {
    const service = await begin({ refuseWith: Routing_Error.BAD_REQUEST, takes: 2, times: 1, ignoresRestart: true })
    await passAfter(service, 4, HANG_UP_MS)
    expect(await service.outcome('channels', 500)).toMatchObject({
      state: 'unknown',
      reason:
        'the radio refused it: BAD_REQUEST; it has some of the new values, and did not restart: until it does, its settings are in the middle of an edit, and the next change would save these values too',
    })
    expect([service.device.starts(), service.device.isEditing()]).toStrictEqual([1, true])
    await service.untilConnected(500)
    // The section shows the values that the radio has now.
    expect(Object((await service.read('channels'))['values']).channels[1]).toMatchObject({
      settings: { name: 'Rescue 2' },
    })
    expect(service.device.saved.channels.get(1)?.settings).toMatchObject({ name: 'Rescue' })
  })

  it('is read again unchanged if the link was lost in the middle', async () => {
    const service = await begin({ hangsUpMidway: true, ignoresRestart: true })
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    await service.untilConnected(500)
    await passAfter(service, 3, HANG_UP_MS)
    expect(await service.outcome('channels', 500)).toMatchObject({
      state: 'unknown',
      reason: expect.stringMatching('the connection broke .* some of the new values, and did not restart'),
    })
  })
})

describe('another radio in its place', () => {
  it('is not restarted for the edit of the first one', async () => {
    const service = await begin({ hangsUpMidway: true })
    await until(() => expect(service.device.admin).toHaveLength(2))
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    service.device.replace(0xa0cb0077)
    expect(await service.outcome('channels', 500)).toMatchObject({
      state: 'unknown',
      reason: 'another radio answered',
    })
    await service.untilConnected(500)
    await service.settle()
    expect(stepsOf(service)).not.toContain('rebootSeconds')
  })
})

describe('when the service is stopped in the middle of an edit', () => {
  const stopAfter = async (manners: Partial<Manners>, steps: number) => {
    const service = await begin({ isMute: true, times: 1, ...manners })
    await until(() => expect(service.device.admin).toHaveLength(steps))
    return service
  }

  it.each([1, 2, 3])('after %i steps, the next start restarts the radio as soon as it is connected', async (steps) => {
    const service = await stopAfter({ takes: steps - 1 }, steps)
    await service.restart()
    await until(async () => {
      expect((await service.read('channels'))['lastChange']).toMatchObject({ state: 'unknown' })
    })
    await until(() => expect(service.device.starts()).toBe(2))
    await until(() => expect(service.radio.links()[0]?.state).not.toBe('connected'))
    await service.untilConnected(500)
    await until(async () => {
      expect((await service.read('channels'))['lastChange']).toMatchObject({
        state: 'unknown',
        settledAt: expect.any(Number),
        reason: expect.stringMatching(
          'service was stopped .* has restarted since, with the settings that it had saved',
        ),
      })
    })
    expect(stepsOf(service).slice(steps)).toStrictEqual(['rebootSeconds'])
    await expectNothingChanged(service)
    await expectWorks(service)
  })

  it('no other change is accepted until it has restarted', async () => {
    const service = await stopAfter({ takes: 1 }, 2)
    service.device.refuse(true)
    service.device.kick()
    await service.restart()
    await until(async () => {
      expect((await service.read('channels'))['lastChange']).toMatchObject({ state: 'unknown', settledAt: null })
    })
    service.device.refuse(false)
    service.device.manners.ignoresRestart = true
    await service.untilConnected(500)
    const answer = await service.ask('PUT', '/api/configuration/mqtt', { values: { root: 'x' } })
    expect([answer.status, answer.body['code']]).toStrictEqual([409, 'configuration_change_in_progress'])
    await passAfter(service, 3, HANG_UP_MS)
    await service.untilConnected()
    await until(async () => {
      expect((await service.read('channels'))['lastChange']).toMatchObject({
        settledAt: expect.any(Number),
        reason: expect.stringMatching('has not restarted since'),
      })
    })
  })

  it('and again before the radio is back, the start after that restarts it', async () => {
    const service = await stopAfter({ takes: 1 }, 2)
    service.device.refuse(true)
    service.device.kick()
    for (let n = 0; n < 2; n++) {
      await service.restart()
      await until(async () => {
        expect((await service.read('channels'))['lastChange']).toMatchObject({ state: 'unknown', settledAt: null })
      })
    }
    service.device.refuse(false)
    await service.untilConnected(500)
    await until(() => expect(service.device.starts()).toBe(2))
    expect(stepsOf(service).slice(2)).toStrictEqual(['rebootSeconds'])
  })

  it('before anything was sent, nothing happens to the radio', async () => {
    const service = await start()
    service.clock.advance(30_000)
    service.device.setSilent(true)
    await service.change('channels', TWO_PARTS)
    await service.restart()
    expect(await service.outcome('channels')).toMatchObject({
      state: 'failed',
      reason: 'the service was stopped; nothing was sent',
    })
    service.device.setSilent(false)
    service.device.kick()
    await service.untilConnected(500)
    await service.settle()
    expect(service.device.packets).toStrictEqual([])
  })

  it('while the radio restarts after it confirmed saving, it is left alone', async () => {
    const service = await begin({ diesOnCommit: true })
    await until(() => expect(service.radio.links()[0]?.state).toBe('restarting'))
    await service.restart()
    expect(await service.outcome('channels')).toMatchObject({
      state: 'unknown',
      reason: 'the service was stopped while the radio restarted',
      settledAt: expect.any(Number),
    })
    service.device.refuse(false)
    await service.untilConnected(500)
    await service.settle()
    expect(stepsOf(service)).not.toContain('rebootSeconds')
    expect(Object((await service.read('channels'))['values']).channels[1]).toMatchObject({
      settings: { name: 'Rescue 2' },
    })
  })
})

it('an edit that ends badly at one radio leaves the other one alone', async () => {
  const service = await start()
  const other = await startConfigDevice(0xa0cb0009, { owner: { longName: 'Second' } })
  try {
    await service.restart([other.port])
    await until(() => expect(service.radio.links().map(({ state }) => state)).toStrictEqual(['connected', 'connected']))
    Object.assign(service.device.manners, { refuseWith: Routing_Error.BAD_REQUEST, takes: 2, times: 1 })
    await service.change('channels', TWO_PARTS)
    const path = `/api/configuration/owner?source=127.0.0.1:${other.port}`
    expect((await service.ask('PUT', path, { values: { longName: 'Third' } })).status).toBe(202)
    expect(await service.outcome('channels', 500)).toMatchObject({ state: 'failed' })
    await until(async () => {
      if (service.radio.links()[1]?.state !== 'connected') service.clock.advance(500)
      expect((await service.ask('GET', path)).body).toMatchObject({ lastChange: { state: 'applied' } })
    })
    expect([other.starts(), service.device.starts()]).toStrictEqual([2, 2])
  } finally {
    await other.stop()
  }
})
