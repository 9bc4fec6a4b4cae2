import { expect, test } from 'vitest'
import { auditRows, type Client } from '../../support/app.ts'
import { ANNOUNCE, createTestAutomation, HOUR, SCHEDULE } from '../../support/automation.ts'

async function ask(client: Client, method: string, path: string, body?: unknown, headers?: Record<string, string>) {
  const answer = await client.send(method, path, body, headers)
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: text === '' ? null : Object(JSON.parse(text)) }
}

const match = (value: string) => ({ 'If-Match': value })

test('replacing and deleting need the version that was read, if the client sends one', async () => {
  const { admin, add, app } = await createTestAutomation()
  const path = `/api/automation/${await add(ANNOUNCE)}`
  const read = async () => {
    const { headers, body } = await ask(admin, 'GET', path)
    expect(headers.get('etag')).toBe(`"${body.automation.revision}"`)
    return String(headers.get('etag'))
  }
  const first = await read()
  const mine = { ...ANNOUNCE, text: 'mine' }
  const changed = await ask(admin, 'PUT', path, mine, match(first))
  expect(changed).toMatchObject({ status: 200, body: { automation: { rule: { text: 'mine' } } } })
  const second = await read()
  expect(second).not.toBe(first)

  for (const stale of [first, `W/${second}`, `"x,y", ${first}`, '""', '"1"', '"2"']) {
    const refused = await ask(admin, 'PUT', path, { ...ANNOUNCE, text: 'theirs' }, match(stale))
    expect(refused, stale).toMatchObject({ status: 412, body: { code: 'automation_changed' } })
    expect(refused.body.detail).toContain('admin')
    expect(await ask(admin, 'DELETE', path, undefined, match(stale)), stale).toMatchObject({ status: 412 })
  }
  expect((await ask(admin, 'GET', path)).body.automation.rule.text).toBe('mine')
  for (const bad of ['2', '"2', '"2" "3"', 'W/', `*, ${second}`, '']) {
    const refused = await ask(admin, 'PUT', path, mine, match(bad))
    expect(refused, bad).toMatchObject({ status: 400, body: { issues: [{ path: 'If-Match' }] } })
  }
  // an identical rule is not a change and keeps its version
  expect((await ask(admin, 'PUT', path, mine, match(second))).status).toBe(200)
  expect(await read()).toBe(second)
  for (const [n, value] of [`"7", ${second}`, '*', undefined].entries()) {
    const headers = value === undefined ? {} : match(value)
    const again = await ask(admin, 'PUT', path, { ...ANNOUNCE, text: `as ${n}` }, headers)
    expect(again, value).toMatchObject({ status: 200, body: { automation: { rule: { text: `as ${n}` } } } })
  }
  const last = await read()
  // The tag stays valid when SESSION_SECRET gets a new first value.
  const { config } = app.ports
  Object.assign(app.ports, { config: { ...config, SESSION_SECRET: ['n'.repeat(40), ...config.SESSION_SECRET] } })
  const renewed = await app.admin()
  expect((await ask(renewed, 'GET', path)).headers.get('etag')).not.toBe(last)
  expect((await ask(renewed, 'DELETE', path, undefined, match(last))).status).toBe(204)
  expect(await ask(renewed, 'PUT', path, mine, match(last))).toMatchObject({ status: 404 })
  expect(auditRows(app).filter(({ action }) => action === 'automation_updated')).toHaveLength(6)
})

test('the version of a rule does not say how often it was changed', async () => {
  const { admin, add } = await createTestAutomation()
  const path = `/api/automation/${await add(ANNOUNCE)}`
  const seen = new Set<number>()
  for (let n = 0; n < 20; n++) {
    const { body } = await ask(admin, 'PUT', path, { ...ANNOUNCE, text: `text ${n}` })
    const { revision } = body.automation
    expect(Number.isSafeInteger(revision) && revision >= 0).toBe(true)
    seen.add(revision)
  }
  expect(seen.size).toBe(20)
  // They do not count up: neither small, nor in order.
  expect(Math.max(...seen)).toBeGreaterThan(1_000_000)
  expect([...seen]).not.toStrictEqual([...seen].toSorted((a, b) => a - b))
  // Nor do two rules with as many changes share their versions.
  const other = await ask(admin, 'GET', `/api/automation/${await add(SCHEDULE)}`)
  expect(seen).not.toContain(other.body.automation.revision)
})

test('of two changes to the same version at once, one is refused', async () => {
  const { admin, add, app } = await createTestAutomation()
  const path = `/api/automation/${await add(ANNOUNCE)}`
  const tag = async () => String((await ask(admin, 'GET', path)).headers.get('etag'))
  const first = await tag()
  const answers = await Promise.all(
    ['one', 'two', 'three'].map((text) => ask(admin, 'PUT', path, { ...ANNOUNCE, text }, match(first))),
  )
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toStrictEqual([200, 412, 412])
  const winner = answers.find(({ status }) => status === 200)
  const { automation } = (await ask(admin, 'GET', path)).body
  expect(automation).toMatchObject({ rule: { text: winner?.body.automation.rule.text } })
  expect(auditRows(app).filter(({ action }) => action === 'automation_updated')).toHaveLength(2)
  const second = await tag()
  const gone = await Promise.all([
    ask(admin, 'PUT', path, ANNOUNCE, match(second)),
    ask(admin, 'DELETE', path, undefined, match(second)),
  ])
  expect(gone.map(({ status }) => status).filter((status) => status < 300)).toHaveLength(1)
})

test.each([
  ['written by a newer version', `json_set(rule, '$.color', 'red')`],
  ['of an unknown kind', `json_set(rule, '$.kind', 'weather')`],
  ['with an invalid pattern', `json_set(rule, '$.cron', '99 9 * * *')`],
  ['with an unknown token', `json_set(rule, '$.action.text', 'It is {weather}')`],
  ['that is cut off', 'substr(rule, 1, 20)'],
  ['that is not an object', `'[]'`],
])('a rule %s is listed separately, never runs, and can be deleted', async (_, damage) => {
  const { admin, add, app, pass, lastRun } = await createTestAutomation()
  const lost = await add({ ...SCHEDULE, name: 'Lost' })
  const whole = await add(SCHEDULE)
  app.store.sqlite.exec(`update automations set rule = ${damage} where id = ${lost}`)
  expect(await pass(9 * HOUR)).toBe(1)
  expect(await lastRun(whole)).toBe('sent')

  const list = await ask(admin, 'GET', '/api/automation')
  expect(list).toMatchObject({ status: 200, body: { automations: [{ id: whole, rule: { name: 'Net' } }] } })
  const { createdAt, updatedAt } = list.body.automations[0]
  const shown = {
    id: lost,
    name: 'Lost',
    kind: 'schedule',
    revision: expect.any(Number),
    createdAt,
    updatedAt,
    updatedBy: 'admin',
  }
  expect(list.body.unreadable).toStrictEqual([shown])
  const path = `/api/automation/${lost}`
  for (const [method, at, body] of [
    ['GET', path, undefined],
    ['PUT', path, SCHEDULE],
    ['POST', `${path}/dry-run`, {}],
  ] as const) {
    expect(await ask(admin, method, at, body)).toMatchObject({ status: 409, body: { code: 'automation_unreadable' } })
  }
  expect((await ask(admin, 'GET', `${path}/runs`)).body.runs).toStrictEqual([])
  const taken = await ask(admin, 'POST', '/api/automation', { ...ANNOUNCE, name: 'lost' })
  expect(taken).toMatchObject({ status: 409, body: { code: 'automation_name_taken' } })
  expect(app.logged.filter((line) => line.includes('cannot be read'))).toHaveLength(1)

  const { revision } = list.body.unreadable[0]
  expect((await ask(admin, 'DELETE', path, undefined, match(`"${revision}"`))).status).toBe(204)
  expect((await ask(admin, 'GET', '/api/automation')).body.unreadable).toStrictEqual([])
  expect(auditRows(app).at(-1)).toStrictEqual({
    action: 'automation_updated',
    username: 'admin',
    details: {
      automationId: lost,
      name: 'Lost',
      kind: 'schedule',
      before: { name: 'Lost', kind: 'schedule', enabled: true },
      after: null,
    },
  })
})

test('runs with unknown reasons or damaged packets are listed', async () => {
  const { admin, add, app, pass } = await createTestAutomation()
  const id = await add(SCHEDULE)
  await pass(9 * HOUR)
  app.store.sqlite.exec(`update automation_runs set reason = 'moon_phase', packets = '[{'`)
  expect((await ask(admin, 'GET', '/api/automation')).body.automations[0].lastRun).toMatchObject({ reason: null })
  const { runs } = (await ask(admin, 'GET', `/api/automation/${id}/runs`)).body
  expect(runs).toMatchObject([{ outcome: 'sent', reason: null, packets: [] }])
})

test('a rule that changes while it sends stops sending', async () => {
  const { add, app, radio, pass, runs, texts } = await createTestAutomation()
  const id = await add({ ...ANNOUNCE, channels: [0, 1, 2] })
  const { reserve } = radio
  radio.reserve = (...asked) => {
    if (radio.sent.length === 1) app.store.sqlite.exec('update automations set revision = revision + 1')
    return reserve(...asked)
  }
  expect(await pass(6 * HOUR)).toBe(1)
  expect(texts()).toHaveLength(1)
  expect(await runs(id)).toMatchObject([{ outcome: 'failed', reason: 'changed', packets: [{ channel: 0 }] }])
})
