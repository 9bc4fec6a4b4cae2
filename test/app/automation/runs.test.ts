import { describe, expect, test } from 'vitest'
import { claimRun, deleteOldRuns, settleInterrupted } from '../../../src/app/automation/runs.ts'
import { auditRows, START } from '../../support/app.ts'
import { ANNOUNCE, createTestAutomation, DAY, HOUR, MINUTE, SCHEDULE, TRACEROUTE } from '../../support/automation.ts'
import { FAR, heard, LOCAL, nodeInfo, packet, text } from '../../support/mesh/mesh.ts'

const OTHER = 0xa0cb0003

describe('an announcement', () => {
  test('goes to each channel at each interval after it was switched on, and never on saving', async () => {
    const t = await createTestAutomation()
    const rule = {
      ...ANNOUNCE,
      channels: [0, 2],
      text: '{shortName} {longName} {nodeId} {nodes}/{active} {date} {time}',
    }
    const id = await t.add(rule)
    expect(await t.pass(6 * HOUR - 1)).toBe(0)
    expect((await t.get(id))['nextRunAt']).toBe(t.app.clock.now + 1)
    for (const text of ['changed', 'changed again', rule.text]) {
      expect((await t.admin.send('PUT', `/api/automation/${id}`, { ...rule, text })).status).toBe(200)
      expect(await t.runDue()).toBe(t.app.clock.now + 1)
    }
    expect(await t.pass(1)).toBe(2)
    expect(t.texts()).toStrictEqual(Array(2).fill('TR Test Radio !a0cb0001 2/0 2026-01-15 18:00'))
    expect(await t.runs(id)).toMatchObject([{ outcome: 'sent', count: 1, packets: [{ channel: 0 }, { channel: 2 }] }])
    expect(await t.pass(18 * HOUR)).toBe(6)
  })

  test('restarts its interval when it is switched on or its interval changes', async () => {
    const t = await createTestAutomation()
    const id = await t.add({ ...ANNOUNCE, enabled: false })
    expect((await t.get(id))['nextRunAt']).toBeNull()
    expect(await t.pass(DAY)).toBe(0)
    await t.admin.send('PUT', `/api/automation/${id}`, ANNOUNCE)
    expect((await t.get(id))['nextRunAt']).toBe(t.app.clock.now + 6 * HOUR)
    expect(await t.pass(5 * HOUR)).toBe(0)
    await t.admin.send('PUT', `/api/automation/${id}`, { ...ANNOUNCE, when: { kind: 'interval', hours: 3 } })
    expect(await t.pass(3 * HOUR - 1)).toBe(0)
    expect(await t.pass(1)).toBe(1)
    await t.admin.send('PUT', `/api/automation/${id}`, { ...ANNOUNCE, enabled: false })
    expect(await t.pass(DAY)).toBe(0)
  })

  test('is sent once across restarts, and missed ones are not made up for', async () => {
    const t = await createTestAutomation()
    const id = await t.add(ANNOUNCE)
    expect(await t.pass(6 * HOUR)).toBe(1)
    for (let n = 0; n < 3; n += 1) {
      t.restart()
      expect(await t.pass(MINUTE)).toBe(0)
    }
    // Down for a little more than two announcements.
    t.app.clock.advance(13 * HOUR)
    t.restart()
    expect(await t.pass(MINUTE)).toBe(0)
    expect(await t.lastRun(id)).toBe('skipped missed')
    expect(await t.pass(5 * HOUR)).toBe(1)
    // In step with the earlier ones.
    expect(await t.get(id)).toMatchObject({ lastRun: { at: START + 24 * HOUR }, nextRunAt: START + 30 * HOUR })
  })

  test('is not repeated early by a machine that starts in 1970 until its clock is set', async () => {
    const t = await createTestAutomation()
    const id = await t.add(ANNOUNCE)
    expect(await t.pass(6 * HOUR)).toBe(1)
    const said = t.app.clock.now
    t.app.clock.now = 2 * HOUR
    expect(await t.pass(MINUTE)).toBe(0)
    // Intervals now count from another moment.
    t.app.clock.now = said + HOUR
    expect(await t.pass(5 * HOUR - 2 * MINUTE)).toBe(0)
    expect((await t.runs(id)).map(({ reason }) => reason)).toStrictEqual(['too_soon', 'missed', null])
    expect(await t.pass(6 * HOUR)).toBe(1)
  })

  test('is sent in time after a short restart', async () => {
    const t = await createTestAutomation()
    await t.add(ANNOUNCE)
    t.app.clock.advance(6 * HOUR + 90_000)
    t.restart()
    await t.runDue()
    expect(t.radio.sent).toHaveLength(1)
  })

  test('is skipped in quiet hours, on a busy channel, without a radio, and with a full queue', async () => {
    const t = await createTestAutomation()
    const id = await t.add({
      ...ANNOUNCE,
      when: { kind: 'interval', hours: 3 },
      quietHours: { from: '14:00', to: '16:00' },
    })
    const expectNext = async (last: string) => {
      expect(await t.pass(3 * HOUR)).toBe(last === 'sent' ? 1 : 0)
      expect(await t.lastRun(id)).toBe(last)
    }
    await expectNext('skipped quiet_hours')
    t.radio.state = 'busy'
    await expectNext('skipped radio_unavailable')
    t.radio.state = 'connected'
    t.radio.txEnabled = false
    await expectNext('skipped tx_disabled')
    t.radio.txEnabled = true
    t.radio.isFull = true
    await expectNext('skipped queue_full')
    t.radio.isFull = false
    await t.pass(2.5 * HOUR)
    await t.measure(25.5)
    expect(await t.pass(0.5 * HOUR)).toBe(0)
    expect(await t.lastRun(id)).toBe('skipped channel_busy')
    await t.pass(2.5 * HOUR)
    await t.measure(25)
    expect(await t.pass(0.5 * HOUR)).toBe(1)
    expect(await t.lastRun(id)).toBe('sent')
  })

  test('that reaches only some of its channels says so', async () => {
    const t = await createTestAutomation()
    await t.hear(heard({ case: 'channel', value: { index: 1, role: 0 } }))
    const id = await t.add({ ...ANNOUNCE, channels: [1, 2] })
    expect(await t.pass(6 * HOUR)).toBe(1)
    expect(await t.runs(id)).toMatchObject([
      { outcome: 'failed', reason: 'channel_disabled', text: 'Hello from TR', packets: [{ channel: 2 }] },
    ])
  })

  test('with a cron pattern keeps its minimum distance, whatever is saved', async () => {
    const t = await createTestAutomation()
    const id = await t.add({ ...ANNOUNCE, when: { kind: 'cron', cron: '0 13 * * *' } })
    expect(await t.pass(HOUR)).toBe(1)
    await t.admin.send('PUT', `/api/automation/${id}`, { ...ANNOUNCE, when: { kind: 'cron', cron: '30 13 * * *' } })
    expect(await t.pass(HOUR)).toBe(0)
    expect(await t.lastRun(id)).toBe('skipped too_soon')
  })
})

describe('a schedule', () => {
  const berlin = { ...SCHEDULE, timeZone: 'Europe/Berlin' }

  test.each([
    ['a fixed time in a gap runs at the end of the gap', '30 2 * * *', '2026-03-28T12:00Z', '2026-03-29T01:00Z'],
    ['a fixed time in a fold runs the first time', '30 2 * * *', '2026-10-24T12:00Z', '2026-10-25T00:30Z'],
    ['a list of times in a fold', '30 2,14 * * *', '2026-10-24T13:00Z', '2026-10-25T00:30Z'],
    ['in its own time zone', '0 9 * * 1-5', '2026-07-03T12:00Z', '2026-07-06T07:00Z'],
  ])('is due once: %s', async (_, cron, from, expected) => {
    const t = await createTestAutomation()
    t.app.clock.now = Date.parse(from)
    t.radio.txEnabled = null
    const id = await t.add({ ...berlin, cron })
    const due = Date.parse(expected)
    expect((await t.get(id))['nextRunAt']).toBe(due)
    expect(await t.pass(due - t.app.clock.now - 1)).toBe(0)
    expect(await t.pass(1)).toBe(1)
    // Across the repeated hour and until the afternoon.
    expect(await t.pass(6 * HOUR)).toBe(0)
  })

  test('that was missed is skipped and says so', async () => {
    const t = await createTestAutomation()
    const id = await t.add(SCHEDULE)
    t.app.clock.advance(3 * DAY)
    t.restart()
    await t.runDue()
    expect(t.radio.sent).toStrictEqual([])
    expect(await t.runs(id)).toMatchObject([{ outcome: 'skipped', reason: 'missed', count: 1 }])
    expect(await t.pass(8 * HOUR)).toBe(1)
  })

  test('sends to a node, or requests a traceroute', async () => {
    const t = await createTestAutomation()
    const id = await t.add({ ...SCHEDULE, action: { kind: 'text', text: 'Hi', to: '!a0cb0002', channel: 1 } })
    await t.add({ ...SCHEDULE, name: 'Way', action: { kind: 'traceroute', to: FAR } })
    const own = await t.add({ ...SCHEDULE, name: 'Own', action: { kind: 'traceroute', to: LOCAL } })
    expect(await t.pass(9 * HOUR)).toBe(2)
    expect(t.radio.sent.map(({ kind }) => kind)).toStrictEqual(['text', 'traceroute'])
    expect(await t.runs(id)).toMatchObject([{ packets: [{ toNodeNum: FAR, channel: 1 }] }])
    expect(await t.lastRun(own)).toBe('skipped no_target')
    const asked = t.app.store.sqlite.prepare('select to_node_num, requested_by from traceroutes').all()
    expect(asked).toStrictEqual([{ to_node_num: FAR, requested_by: 'automation:Way' }])
    expect(auditRows(t.app).filter(({ action }) => action === 'message_sent')).toMatchObject([
      { username: 'system', details: { to: FAR, channel: 1, automation: id } },
      { username: 'system', details: { to: FAR, kind: 'traceroute', automation: id + 1 } },
    ])
  })

  test('to a disabled channel says so', async () => {
    const t = await createTestAutomation()
    await t.hear(heard({ case: 'channel', value: { index: 1, role: 0 } }))
    const id = await t.add({ ...SCHEDULE, action: { kind: 'text', text: 'Hi', channel: 1 } })
    await t.pass(9 * HOUR)
    expect(await t.lastRun(id)).toBe('skipped channel_disabled')
  })

  test('is back in step after the clock was ahead', async () => {
    const t = await createTestAutomation()
    const id = await t.add(SCHEDULE)
    t.app.clock.advance(400 * DAY)
    await t.runDue()
    t.app.clock.advance(-400 * DAY)
    await t.runDue()
    expect((await t.get(id))['nextRunAt']).toBe(t.app.clock.now + 8 * HOUR)
    expect(await t.pass(9 * HOUR)).toBe(1)
  })
})

describe('a traceroute', () => {
  test('asks the node that has waited longest, and leaves out ignored, silent and distant ones', async () => {
    const t = await createTestAutomation()
    const now = t.app.clock.now
    await t.hear(heard(packet(text('hi'), { from: OTHER })), heard(packet(text('hi'), { from: 9, viaMqtt: true })))
    await t.hear(heard(nodeInfo({ num: 10, lastHeard: Math.floor((now - 2 * DAY) / 1000) })))
    await t.hear(heard(packet(text('hi'), { from: 11 })))
    await t.admin.send('PUT', '/api/nodes/11', { isIgnored: true })
    await t.add(TRACEROUTE)
    expect(await t.pass(2 * HOUR)).toBe(4)
    const asked = t.app.store.sqlite.prepare('select to_node_num from traceroutes order by id').pluck().all()
    expect(new Set(asked.slice(0, 2))).toStrictEqual(new Set([FAR, OTHER]))
    expect(asked.slice(2)).toStrictEqual(asked.slice(0, 2))
  })

  test('cycles through its list', async () => {
    const t = await createTestAutomation()
    await t.add({ ...TRACEROUTE, everyMinutes: 5, targets: { kind: 'list', nodes: [30, '!00000014', LOCAL, 10] } })
    expect(await t.pass(20 * MINUTE)).toBe(4)
    const asked = t.app.store.sqlite.prepare('select to_node_num from traceroutes order by id').pluck().all()
    expect(asked).toStrictEqual([30, 20, 10, 30])
  })

  test('without a node to ask says so', async () => {
    const t = await createTestAutomation()
    const id = await t.add({ ...TRACEROUTE, targets: { kind: 'oldest', activeWithinHours: 1 } })
    t.app.clock.advance(2 * HOUR)
    await t.runDue()
    expect(await t.pass(30 * MINUTE)).toBe(0)
    expect(await t.lastRun(id)).toBe('skipped no_target')
  })
})

describe('a run that is claimed', () => {
  const claimOf = (automationId: number, now: number) => ({
    automationId,
    revision: 1,
    key: `slot ${now}`,
    now,
    triggeredBy: null,
    text: 'Hello',
    slot: now,
  })

  test('is not repeated after a crash before sending, and is shown as interrupted', async () => {
    const t = await createTestAutomation()
    const id = await t.add(ANNOUNCE)
    const slot = t.app.clock.now + 6 * HOUR
    t.app.clock.now = slot
    expect(await claimRun(t.app.store, claimOf(id, slot))).toStrictEqual({ kind: 'claimed', id: 1 })
    expect(await t.lastRun(id)).toBe('sending')
    t.restart()
    await settleInterrupted(t.app.store)
    expect(await t.pass(MINUTE)).toBe(0)
    expect(await t.lastRun(id)).toBe('failed interrupted')
    expect(await claimRun(t.app.store, claimOf(id, slot))).toStrictEqual({ kind: 'refused', reason: 'duplicate' })
    expect(await t.pass(6 * HOUR)).toBe(1)
  })

  test('is refused when the rule was changed, switched off or deleted in between', async () => {
    const t = await createTestAutomation()
    const id = await t.add(ANNOUNCE)
    const changed = { kind: 'refused', reason: 'changed' }
    expect(await claimRun(t.app.store, { ...claimOf(id, 1), revision: 0 })).toStrictEqual(changed)
    await t.admin.send('PUT', `/api/automation/${id}`, { ...ANNOUNCE, enabled: false })
    expect(await claimRun(t.app.store, { ...claimOf(id, 1), revision: 2 })).toStrictEqual(changed)
    await t.admin.send('DELETE', `/api/automation/${id}`)
    expect(await claimRun(t.app.store, { ...claimOf(id, 1), revision: 2 })).toStrictEqual(changed)
    expect(t.app.store.sqlite.prepare('select count(*) from automation_runs').pluck().get()).toBe(0)
  })
})

test('a failing rule does not stop others, and is not sent again', async () => {
  const t = await createTestAutomation()
  const broken = await t.add({ ...SCHEDULE, name: 'Broken' })
  const whole = await t.add(SCHEDULE)
  const { reserve } = t.radio
  let calls = 0
  t.radio.reserve = (kind) => {
    calls += 1
    if (calls === 1) throw new Error('the radio is on fire')
    return reserve(kind)
  }
  expect(await t.pass(9 * HOUR)).toBe(1)
  expect([await t.lastRun(broken), await t.lastRun(whole)]).toStrictEqual(['failed error', 'sent'])
  expect(t.app.logged.filter((line) => line.includes('An automation failed'))).toHaveLength(1)
})

test('a time zone that no longer exists stops no other rule', async () => {
  const t = await createTestAutomation()
  const lost = await t.add({ ...SCHEDULE, name: 'Lost' })
  await t.add(SCHEDULE)
  t.app.store.sqlite
    .prepare("update automations set rule = json_set(rule, '$.timeZone', 'Mars/Olympus') where id = ?")
    .run(lost)
  expect(await t.pass(9 * HOUR)).toBe(1)
  expect(t.app.logged.some((line) => line.includes('An automation failed'))).toBe(true)
  expect(await t.get(lost)).toMatchObject({ state: 'blocked', blockedBy: 'error', nextRunAt: null })
})

test('runs are kept for 90 days, at most 10,000 per rule', async () => {
  const t = await createTestAutomation()
  const id = await t.add(ANNOUNCE)
  const now = t.app.clock.now
  const insert = t.app.store.sqlite.prepare(
    `insert into automation_runs (automation_id, key, t, last_t, outcome)
      with recursive n(value) as (select 1 union all select value + 1 from n where value < ?)
      select ?, 'slot ' || value, ?, ?, 'sent' from n`,
  )
  const series = (automation: number, at: number, n: number) => insert.run(n, automation, at, at)
  series(id, now - 90 * DAY + 1, 10_050)
  series(id + 1, now - 90 * DAY - 1, 1500)
  let pauses = 0
  const pause = async () => {
    pauses += 1
    return true
  }
  expect(await deleteOldRuns(t.app.store, now, pause)).toBe(1550)
  expect(pauses).toBe(3)
  const left = t.app.store.sqlite.prepare('select automation_id, count(*) n, min(id) first from automation_runs').all()
  expect(left).toStrictEqual([{ automation_id: id, n: 10_000, first: 51 }])
  expect(await deleteOldRuns(t.app.store, now, async () => false)).toBe(0)
})
