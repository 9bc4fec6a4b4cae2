import { describe, expect, test } from 'vitest'
import { type Client, START } from '../../support/app.ts'
import {
  ACKNOWLEDGE,
  ANNOUNCE,
  createTestAutomation,
  HOUR,
  MINUTE,
  SCHEDULE,
  type TestAutomation,
  TRACEROUTE,
} from '../../support/automation.ts'
import { FAR, heard, LOCAL, packet, user } from '../../support/mesh/mesh.ts'

async function dryRun(t: TestAutomation, rule: object, sample?: object) {
  const answer = await t.admin.send('POST', '/api/automation/dry-run', { rule, ...(sample && { sample }) })
  const body = Object(await answer.json())
  expect(answer.status, JSON.stringify(body)).toBe(200)
  return body
}

test('shows the text, the time and the airtime, and does nothing', async () => {
  const t = await createTestAutomation()
  const tables = () =>
    ['messages', 'automations', 'automation_runs', 'audit_log'].map((table) =>
      t.app.store.sqlite.prepare(`select count(*) from ${table}`).pluck().get(),
    )
  const before = tables()
  const text = '{longName} knows {nodes} nodes, it is {time} on {date}'
  const found = await dryRun(t, { ...ANNOUNCE, enabled: false, channels: [0, 3], text, timeZone: 'Asia/Tokyo' })
  const message = {
    kind: 'text',
    toNodeNum: 0xffffffff,
    toNodeId: '!ffffffff',
    text: 'Test Radio knows 2 nodes, it is 21:00 on 2026-01-15',
    bytes: 51,
    airtimeMs: 805,
  }
  expect(found).toStrictEqual({
    messages: [
      { ...message, channel: 0 },
      { ...message, channel: 3 },
    ],
    blockedBy: null,
    nextRuns: [1, 2, 3, 4, 5].map((n) => ({ at: START + n * 6 * HOUR, skippedBy: null })),
    estimate: { runsPerDay: 4, packetsPerDay: 8, airtimeMsPerDay: 6440, isUpperBound: false },
    modem: { preset: 'LONG_FAST', isAssumed: true, spreadFactor: 11, bandwidthKhz: 250, codingRate: 5 },
    sample: null,
  })
  expect(t.radio.sent).toStrictEqual([])
  expect(tables()).toStrictEqual(before)
})

test('uses the modem preset of the radio', async () => {
  const t = await createTestAutomation()
  const preset = { usePreset: true, region: 'EU_868', spreadFactor: 0, bandwidth: 0, codingRate: 0 }
  const modemOf = async (lora: typeof t.radio.loraSettings) => {
    t.radio.loraSettings = lora
    const { modem, messages } = await dryRun(t, { ...ANNOUNCE, text: 'x'.repeat(100) })
    return { ...modem, ms: messages[0].airtimeMs }
  }
  expect(await modemOf({ ...preset, modemPreset: 'SHORT_FAST' })).toMatchObject({
    preset: 'SHORT_FAST',
    isAssumed: false,
    spreadFactor: 7,
    // 16 + 4.25 + 8 + 36 × 5 symbols of 0.512 ms.
    ms: 107,
  })
  expect(await modemOf({ ...preset, modemPreset: 'LONG_SLOW' })).toMatchObject({ spreadFactor: 12, ms: 7479 })
  expect(await modemOf({ ...preset, modemPreset: 'LONG_FAST', region: 'LORA_24' })).toMatchObject({
    bandwidthKhz: 812.5,
  })
  const custom = {
    ...preset,
    usePreset: false,
    modemPreset: 'LONG_FAST',
    spreadFactor: 9,
    bandwidth: 62,
    codingRate: 8,
  }
  expect(await modemOf(custom)).toMatchObject({ preset: 'custom', isAssumed: false, bandwidthKhz: 62.5, codingRate: 8 })
  expect(await modemOf({ ...preset, modemPreset: 'NARROW_SLOW' })).toMatchObject({
    preset: 'LONG_FAST',
    isAssumed: true,
  })
})

test('names runs in quiet hours and does not count them', async () => {
  const t = await createTestAutomation()
  const quietHours = { from: '23:00', to: '07:00' }
  const { nextRuns, estimate } = await dryRun(t, { ...ANNOUNCE, quietHours })
  expect(nextRuns.map(({ skippedBy }: { skippedBy: string }) => skippedBy)).toStrictEqual([
    null,
    'quiet_hours',
    'quiet_hours',
    null,
    null,
  ])
  expect(estimate).toMatchObject({ runsPerDay: 2, isUpperBound: false })
  const daily = await dryRun(t, { ...SCHEDULE, cron: '30 6 * * 1,3', timeZone: 'Europe/Berlin' })
  expect(daily.nextRuns[0]).toStrictEqual({ at: Date.parse('2026-01-19T05:30Z'), skippedBy: null })
  expect(daily.estimate.runsPerDay).toBe(0.29)
  expect((await dryRun(t, { ...SCHEDULE, cron: '*/5 * * * *' })).estimate.runsPerDay).toBe(288)
})

test('a traceroute shows which node it would ask', async () => {
  const t = await createTestAutomation()
  const { messages, estimate } = await dryRun(t, TRACEROUTE)
  expect(messages).toMatchObject([{ kind: 'traceroute', toNodeNum: FAR, text: null, bytes: 0, airtimeMs: 395 }])
  expect(estimate).toMatchObject({ packetsPerDay: 48, airtimeMsPerDay: 48 * 395 })
  const nobody = await dryRun(t, { ...TRACEROUTE, targets: { kind: 'list', nodes: [LOCAL] } })
  expect(nobody).toMatchObject({ messages: [], estimate: { packetsPerDay: 0 } })
})

describe('a user from whom a node is hidden', () => {
  const WRITE = { read: true, write: true }
  const HIDDEN = 0xa0cb0003
  const answer = { kind: 'text', text: '{senderLongName} {senderShortName} of {nodes}, {active}' }
  async function withHidden() {
    const t = await createTestAutomation()
    const named = user({ id: '!a0cb0003', longName: 'Behind the hill', shortName: 'BH' })
    await t.hear(heard(packet(named, { from: HIDDEN }), { at: START }))
    expect((await t.admin.send('PUT', `/api/nodes/${HIDDEN}`, { hidden: true, isIgnored: true })).status).toBe(200)
    return t
  }
  const asked = async (client: Client, rule: object, sample?: object) =>
    Object(await (await client.send('POST', '/api/automation/dry-run', { rule, ...(sample && { sample }) })).json())

  test('learns neither its name nor its marks from a sample', async () => {
    const t = await withHidden()
    const reader = await t.app.user('anna', { automation: WRITE, nodes: { read: true, write: false } })
    const other = await t.app.user('bert', { automation: WRITE, nodes: { read: false, write: false } })
    const rule = { ...ACKNOWLEDGE, answer }
    const sampleOf = (from: number) => ({ text: 'ping', from })
    const textOf = async (client: Client, from: number) => {
      const { messages, sample } = await asked(client, rule, sampleOf(from))
      return [messages[0].text, sample.skippedBy]
    }
    expect(await textOf(t.admin, HIDDEN)).toEqual(['Behind the hill BH of 2, 1', 'ignored_node'])
    expect(await textOf(reader, HIDDEN)).toEqual(['!a0cb0003 ? of 2, 1', null])
    // As of a node that does not exist.
    expect(await textOf(reader, HIDDEN + 1)).toEqual(['!a0cb0004 ? of 2, 1', null])
    expect(await textOf(reader, FAR)).toEqual(['Far Hill FH of 2, 1', null])
    expect(await textOf(other, FAR)).toEqual(['!a0cb0002 ? of 2, 1', null])
  })

  test('sees another target of a traceroute', async () => {
    const t = await withHidden()
    await t.admin.send('PUT', `/api/nodes/${HIDDEN}`, { isIgnored: false })
    t.app.store.sqlite.exec(`update nodes set last_heard = last_heard + 1 where node_num = ${HIDDEN}`)
    const reader = await t.app.user('anna', { automation: WRITE, nodes: { read: true, write: false } })
    const targetOf = async (client: Client) => (await asked(client, TRACEROUTE)).messages[0].toNodeNum
    expect([await targetOf(t.admin), await targetOf(reader)]).toEqual([HIDDEN, FAR])
  })
})

test('an answer is tried on a sample: whether the rule matches, and why it would stay silent', async () => {
  const t = await createTestAutomation()
  const rule = { ...ACKNOWLEDGE, enabled: false, answer: { kind: 'text', text: '{senderShortName} {hops} {snr}' } }
  const sample = { text: 'Ping!', from: '!a0cb0002', hopsAway: 2, snr: -7.5 }
  expect(await dryRun(t, rule, sample)).toMatchObject({
    messages: [{ kind: 'text', text: 'FH 2 -7.5', channel: 0, toNodeId: '!ffffffff' }],
    nextRuns: [],
    estimate: { runsPerDay: 480, isUpperBound: true },
    sample: { isHeard: true, skippedBy: null },
  })
  const outcomes = [
    [{ ...sample, text: 'pinging' }, false, null],
    [{ ...sample, channel: 1 }, false, null],
    [{ ...sample, from: LOCAL }, true, 'own_message'],
    [{ ...sample, isReply: true }, true, 'is_answer'],
    [{ ...sample, ageSeconds: 301 }, true, 'too_old'],
    [{ text: '🤖 ping' }, true, 'bot'],
  ] as const
  for (const [tried, isHeard, skippedBy] of outcomes) {
    expect((await dryRun(t, rule, tried)).sample, JSON.stringify(tried)).toStrictEqual({ isHeard, skippedBy })
  }
  const direct = await dryRun(t, rule, { ...sample, direct: true })
  expect(direct.messages).toMatchObject([{ toNodeId: '!a0cb0002' }])
  const tapback = await dryRun(t, { ...rule, answer: { kind: 'tapback', emoji: '👍' } }, sample)
  expect(tapback.messages).toMatchObject([{ kind: 'tapback', text: '👍', bytes: 4, airtimeMs: 518 }])
  const quiet = await dryRun(t, { ...rule, quietHours: { from: '18:00', to: '06:00' } })
  expect(quiet.estimate.runsPerDay).toBe(240)
  t.radio.txEnabled = false
  expect(await dryRun(t, rule, sample)).toMatchObject({
    blockedBy: 'tx_disabled',
    sample: { isHeard: true, skippedBy: 'tx_disabled' },
  })
})

test('for a saved rule it shows the runs as they will happen', async () => {
  const t = await createTestAutomation()
  const id = await t.add(ANNOUNCE)
  t.app.clock.advance(HOUR)
  const answer = await t.admin.send('POST', `/api/automation/${id}/dry-run`)
  const { nextRuns } = Object(await answer.json())
  expect(nextRuns[0]).toStrictEqual({ at: START + 6 * HOUR, skippedBy: null })
  expect((await t.get(id))['nextRunAt']).toBe(START + 6 * HOUR)
  expect((await dryRun(t, ANNOUNCE)).nextRuns[0].at).toBe(START + 7 * HOUR)
})

test('the next run is the first one outside quiet hours, or none', async () => {
  const t = await createTestAutomation()
  const quietHours = { from: '00:00', to: '23:59' }
  const often = await t.add({ ...SCHEDULE, cron: '*/5 * * * *', timeZone: 'Europe/Berlin', quietHours })
  expect((await t.get(often))['nextRunAt']).toBeNull()
  const daily = await t.add({ ...SCHEDULE, name: 'Never', quietHours })
  expect((await t.get(daily))['nextRunAt']).toBeNull()
  const drifting = { ...ANNOUNCE, when: { kind: 'interval', hours: 25 }, quietHours: { from: '06:00', to: '18:00' } }
  const id = await t.add(drifting)
  // At 13, 14, 15, 16, 17 and then 18 o'clock.
  expect((await t.get(id))['nextRunAt']).toBe(START + 6 * 25 * HOUR)
  t.app.clock.advance(MINUTE)
  expect((await t.get(id))['nextRunAt']).toBe(START + 6 * 25 * HOUR)
})

test('other requests get their turn while the runs of quiet rules are counted', async () => {
  const t = await createTestAutomation()
  const often = { ...SCHEDULE, cron: '*/5 * * * *', quietHours: { from: '00:00', to: '23:59' } }
  for (let n = 0; n < 8; n++) await t.add({ ...often, name: `Rule ${n}` })
  const turnsWhile = async (work: () => Promise<unknown>) => {
    let turns = 0
    let isOver = false
    const count = () => {
      turns += 1
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    await work()
    isOver = true
    return turns
  }
  expect(await turnsWhile(() => dryRun(t, often))).toBeGreaterThan(4)
  expect(await turnsWhile(() => t.admin.send('GET', '/api/automation'))).toBeGreaterThan(7)
})
