import { expect, test } from 'vitest'
import { auditRows, type Client, createTestApp, START } from '../../support/app.ts'
import { ACKNOWLEDGE, ANNOUNCE, HOUR, SCHEDULE, TRACEROUTE } from '../../support/automation.ts'

const READ = { automation: { read: true, write: false } }
const WRITE = { automation: { read: true, write: true } }

async function ask(client: Client, method: string, path: string, body?: unknown) {
  const answer = await client.send(method, path, body)
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: text === '' ? null : Object(JSON.parse(text)) }
}

const automationAudit = (app: Parameters<typeof auditRows>[0]) =>
  auditRows(app).filter(({ action }) => action === 'automation_updated')

test('access by role: a change is recorded with its details, and nothing else is', async () => {
  const app = await createTestApp()
  const [nobody, reader, writer] = [
    await app.user('nobody'),
    await app.user('reader', READ),
    await app.user('writer', WRITE),
  ]
  const admin = await app.admin()
  const changes = [
    ['POST', '/api/automation', SCHEDULE],
    ['PUT', '/api/automation/1', ANNOUNCE],
    ['DELETE', '/api/automation/1', undefined],
    ['POST', '/api/automation/dry-run', { rule: ANNOUNCE }],
  ] as const
  const looks = [
    ['GET', '/api/automation', undefined],
    ['GET', '/api/automation/1', undefined],
    ['GET', '/api/automation/1/runs', undefined],
    ['POST', '/api/automation/1/dry-run', {}],
  ] as const
  expect((await ask(writer, 'POST', '/api/automation', ANNOUNCE)).status).toBe(201)
  for (const [method, path, body] of [...changes, ...looks]) {
    expect((await ask(app.client(), method, path, body)).status, path).toBe(401)
    expect((await ask(nobody, method, path, body)).status, path).toBe(403)
  }
  for (const [method, path, body] of changes) expect((await ask(reader, method, path, body)).status, path).toBe(403)
  for (const [method, path, body] of looks) expect((await ask(reader, method, path, body)).status, path).toBe(200)
  expect(automationAudit(app)).toHaveLength(1)

  const stored = { ...ANNOUNCE, timeZone: 'UTC', quietHours: null }
  expect((await ask(writer, 'PUT', '/api/automation/1', stored)).status).toBe(200)
  expect((await ask(writer, 'PUT', '/api/automation/1', { ...ANNOUNCE, text: 'Hi', enabled: false })).status).toBe(200)
  expect((await ask(writer, 'POST', '/api/automation/dry-run', { rule: ANNOUNCE })).status).toBe(200)
  const gone = await ask(admin, 'DELETE', '/api/automation/1')
  expect(gone).toMatchObject({ status: 204, body: null })
  const last = { ...stored, text: 'Hi', enabled: false }
  const named = { automationId: 1, name: 'Hello', kind: 'announce' }
  expect(automationAudit(app)).toStrictEqual([
    { action: 'automation_updated', username: 'writer', details: { ...named, before: null, after: stored } },
    {
      action: 'automation_updated',
      username: 'writer',
      details: { ...named, before: { enabled: true, text: ANNOUNCE.text }, after: { enabled: false, text: 'Hi' } },
    },
    { action: 'automation_updated', username: 'admin', details: { ...named, before: last, after: null } },
  ])
})

test('an automation shows its rule, its state and its next run', async () => {
  const app = await createTestApp()
  const admin = await app.admin()
  const { enabled: _, ...rule } = ANNOUNCE
  const made = await ask(admin, 'POST', '/api/automation', rule)
  expect(made.headers.get('location')).toBe('/api/automation/1')
  const automation = {
    id: 1,
    rule: { ...rule, enabled: false, timeZone: 'UTC', quietHours: null },
    state: 'off',
    blockedBy: null,
    runs: true,
    nextRunAt: null,
    lastRun: null,
    revision: expect.any(Number),
    createdAt: START,
    updatedAt: START,
    updatedBy: 'admin',
  }
  expect(made).toMatchObject({ status: 201, body: { automation } })
  app.clock.advance(HOUR)
  const changed = await ask(admin, 'PUT', '/api/automation/1', ANNOUNCE)
  const on = {
    ...automation,
    rule: { ...automation.rule, enabled: true },
    state: 'blocked',
    blockedBy: 'radio_unavailable',
  }
  const next = { nextRunAt: START + 7 * HOUR, updatedAt: START + HOUR, revision: expect.any(Number) }
  expect(changed).toMatchObject({ status: 200, body: { automation: { ...on, ...next } } })
  const list = await ask(admin, 'GET', '/api/automation')
  expect(list.body).toStrictEqual({
    automations: [{ ...on, ...next }],
    unreadable: [],
    maxAutomations: 50,
    answersLastHour: 0,
    maxAnswersPerHour: 20,
  })
  expect((await ask(admin, 'GET', '/api/automation/1/runs')).body).toStrictEqual({ runs: [], nextBefore: null })
})

test('runs come in pages, newest first', async () => {
  const app = await createTestApp()
  const admin = await app.admin()
  await ask(admin, 'POST', '/api/automation', ANNOUNCE)
  app.store.sqlite
    .prepare(
      `with recursive n(v) as (select 1 union all select v + 1 from n where v < 5)
        insert into automation_runs (automation_id, key, t, last_t, outcome, reason)
        select 1, 'k' || v, v, v, 'skipped', 'missed' from n`,
    )
    .run()
  const first = (await ask(admin, 'GET', '/api/automation/1/runs?limit=3')).body
  const second = (await ask(admin, 'GET', `/api/automation/1/runs?limit=3&before=${first.nextBefore}`)).body
  expect([...first.runs, ...second.runs].map(({ id }: { id: number }) => id)).toStrictEqual([5, 4, 3, 2, 1])
  expect(second.nextBefore).toBeNull()
  for (const query of ['limit=0', 'limit=501', 'before=0', 'before=x']) {
    expect((await ask(admin, 'GET', `/api/automation/1/runs?${query}`)).status, query).toBe(400)
  }
})

test('a name is unique without regard to case, also for two requests at once', async () => {
  const app = await createTestApp()
  const admin = await app.admin()
  const both = await Promise.all([
    ask(admin, 'POST', '/api/automation', ANNOUNCE),
    ask(admin, 'POST', '/api/automation', { ...SCHEDULE, name: 'HELLO' }),
  ])
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toStrictEqual([201, 409])
  await ask(admin, 'POST', '/api/automation', SCHEDULE)
  const taken = await ask(admin, 'PUT', '/api/automation/1', { ...ANNOUNCE, name: 'net' })
  expect(taken).toMatchObject({ status: 409, body: { code: 'automation_name_taken' } })
  expect((await ask(admin, 'PUT', '/api/automation/1', { ...ANNOUNCE, name: 'hellO' })).status).toBe(200)
})

test('at most 50 are allowed', async () => {
  const app = await createTestApp()
  const admin = await app.admin()
  for (let n = 1; n <= 50; n += 1) {
    expect((await ask(admin, 'POST', '/api/automation', { ...ANNOUNCE, name: `rule ${n}` })).status).toBe(201)
  }
  const refused = await ask(admin, 'POST', '/api/automation', ANNOUNCE)
  expect(refused).toMatchObject({ status: 409, body: { code: 'too_many_automations' } })
  expect((await ask(admin, 'DELETE', '/api/automation/7')).status).toBe(204)
  expect((await ask(admin, 'POST', '/api/automation', ANNOUNCE)).body.automation.id).toBe(51)
})

test('an unknown automation is not found', async () => {
  const app = await createTestApp()
  const admin = await app.admin()
  for (const [method, path, body] of [
    ['GET', '/api/automation/1', undefined],
    ['PUT', '/api/automation/1', ANNOUNCE],
    ['DELETE', '/api/automation/1', undefined],
    ['GET', '/api/automation/1/runs', undefined],
    ['POST', '/api/automation/1/dry-run', {}],
  ] as const) {
    const answer = await ask(admin, method, path, body)
    expect(answer, `${method} ${path}`).toMatchObject({ status: 404, body: { code: 'automation_not_found' } })
  }
  expect((await ask(admin, 'GET', '/api/automation/0')).status).toBe(400)
  expect(automationAudit(app)).toStrictEqual([])
})

const shared = createTestApp()
const sharedAdmin = shared.then((app) => app.admin())

const ALL = { announce: ANNOUNCE, acknowledge: ACKNOWLEDGE, traceroute: TRACEROUTE, schedule: SCHEDULE }

test.each([
  ['an unknown field', { ...ANNOUNCE, color: 'red' }, ''],
  ['an unknown kind', { ...ANNOUNCE, kind: 'shout' }, 'kind'],
  ['no name', { ...ANNOUNCE, name: '' }, 'name'],
  ['a name with a space at its end', { ...ANNOUNCE, name: 'Hello ' }, 'name'],
  ['a name with a control character', { ...ANNOUNCE, name: 'He\u0007llo' }, 'name'],
  ['an unknown time zone', { ...ANNOUNCE, timeZone: 'Mars/Base' }, 'timeZone'],
  ['quiet hours that are not a time', { ...ANNOUNCE, quietHours: { from: '24:00', to: '06:00' } }, 'quietHours.from'],
  ['quiet hours all day', { ...ANNOUNCE, quietHours: { from: '06:00', to: '06:00' } }, 'quietHours'],
  ['an interval below 3 hours', { ...ANNOUNCE, when: { kind: 'interval', hours: 2 } }, 'when.hours'],
  ['an announcement each hour', { ...ANNOUNCE, when: { kind: 'cron', cron: '0 * * * *' } }, 'when.cron'],
  ['two close announcements a week', { ...ANNOUNCE, when: { kind: 'cron', cron: '0 9,11 * * 1' } }, 'when.cron'],
  ['no channel', { ...ANNOUNCE, channels: [] }, 'channels'],
  ['a channel twice', { ...ANNOUNCE, channels: [1, 1] }, 'channels'],
  ['an unknown channel', { ...ANNOUNCE, channels: [8] }, 'channels.0'],
  ['an empty text', { ...ANNOUNCE, text: ' \n' }, 'text'],
  ['a text of 201 bytes', { ...ANNOUNCE, text: 'ä'.repeat(100) + 'x' }, 'text'],
  ['a text that is too long with a long name', { ...ANNOUNCE, text: `{longName}${'x'.repeat(162)}` }, 'text'],
  ['an unknown token', { ...ANNOUNCE, text: 'Hello {world}' }, 'text'],
  ['a sender token in a rule without a sender', { ...ANNOUNCE, text: 'Hello {senderId}' }, 'text'],
  ['half a character', { ...ANNOUNCE, text: 'Hello \ud83d' }, 'text'],
  ['neither channel nor direct messages', { ...ACKNOWLEDGE, channels: [], direct: false }, 'channels'],
  ['no words', { ...ACKNOWLEDGE, match: { words: [] } }, 'match.words'],
  ['a blank word', { ...ACKNOWLEDGE, match: { words: ['  '] } }, 'match.words.0'],
  ['a regular expression as a mode', { ...ACKNOWLEDGE, match: { mode: 'regex', words: ['a+'] } }, 'match.mode'],
  ['a word of 65 characters', { ...ACKNOWLEDGE, match: { words: ['x'.repeat(65)] } }, 'match.words.0'],
  [
    'an answer that is too long',
    { ...ACKNOWLEDGE, answer: { kind: 'text', text: '{senderLongName}'.repeat(6) } },
    'answer.text',
  ],
  [
    'a reaction of many characters',
    { ...ACKNOWLEDGE, answer: { kind: 'tapback', emoji: '👍'.repeat(10) } },
    'answer.emoji',
  ],
  ['traceroutes each 4 minutes', { ...TRACEROUTE, everyMinutes: 4 }, 'everyMinutes'],
  [
    'a traceroute to the broadcast address',
    { ...TRACEROUTE, targets: { kind: 'list', nodes: ['!ffffffff'] } },
    'targets.nodes.0',
  ],
  ['a node twice', { ...TRACEROUTE, targets: { kind: 'list', nodes: [16, '!00000010'] } }, 'targets.nodes'],
  [
    '51 nodes',
    { ...TRACEROUTE, targets: { kind: 'list', nodes: Array.from({ length: 51 }, (_, n) => n + 1) } },
    'targets.nodes',
  ],
  ['a schedule each minute', { ...SCHEDULE, cron: '* * * * *' }, 'cron'],
  ['a schedule with seconds', { ...SCHEDULE, cron: '0 0 12 * * *' }, 'cron'],
  ['a schedule that is never due', { ...SCHEDULE, cron: '0 12 31 2 *' }, 'cron'],
  ['no cron pattern', { ...SCHEDULE, cron: '61 12 * * *' }, 'cron'],
  ['a nickname', { ...SCHEDULE, cron: '@reboot' }, 'cron'],
  [
    'a schedule to the broadcast address by name',
    { ...SCHEDULE, action: { kind: 'traceroute', to: 0xffffffff } },
    'action.to',
  ],
])('refused: %s', async (_, rule, path) => {
  const admin = await sharedAdmin
  for (const refused of [
    await ask(admin, 'POST', '/api/automation', rule),
    await ask(admin, 'POST', '/api/automation/dry-run', { rule }),
  ]) {
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(refused.body.issues.map((issue: { path: string }) => issue.path.replace(/^rule\.?/, ''))).toContain(path)
  }
  expect((await ask(admin, 'GET', '/api/automation')).body.automations).toStrictEqual([])
})

test.each(Object.entries(ALL))(
  'a rule of kind %s is returned as it was sent and can be sent again',
  async (_, rule) => {
    const app = await createTestApp()
    const admin = await app.admin()
    const made = (await ask(admin, 'POST', '/api/automation', rule)).body.automation
    expect(made.rule).toMatchObject(rule)
    const again = await ask(admin, 'PUT', `/api/automation/${made.id}`, made.rule)
    expect(again.body.automation).toStrictEqual(made)
    expect(automationAudit(app)).toHaveLength(1)
  },
)
