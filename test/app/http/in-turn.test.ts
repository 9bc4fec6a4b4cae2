import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { outcomeOf } from '../../support/answers.ts'
import { type Client, createTestApp, type TestApp } from '../../support/app.ts'

let app: TestApp
let admin: Client
beforeEach(async () => {
  app = await createTestApp()
  admin = await app.admin()
})
afterEach(() => app.close())

const many = (count: number, path: string, client = admin) =>
  Promise.all(Array.from({ length: count }, () => outcomeOf(client.send('GET', path))))

const countOf = (outcomes: readonly string[], outcome: string) => outcomes.filter((other) => other === outcome).length

/** More than one page of an export. */
function fillAudit(entries: number): void {
  app.store.sqlite.exec(`with recursive n(i) as (select 1 union all select i + 1 from n where i < ${entries})
    insert into audit_log (timestamp, user_id, username, action, resource, details, ip, request_id)
    select i, 7, 'old', 'node_updated', 'nodes', '{}', null, null from n`)
}

describe('expensive reads', () => {
  test('all eight at once get their answer', async () => {
    expect(countOf(await many(8, '/api/dashboard'), '200')).toBe(8)
  })

  test('two run, 32 wait, and further ones are told to retry until some have ended', async () => {
    const outcomes = await many(60, '/api/audit?q=nothing')
    expect(countOf(outcomes, '200')).toBe(34)
    expect(countOf(outcomes, '429 rate_limited')).toBe(26)
    expect(countOf(await many(34, '/api/audit?q=nothing'), '200')).toBe(34)
  })

  test('one user only waits for their own reads', async () => {
    const anna = await app.user('anna')
    const [outcomes, other] = await Promise.all([many(60, '/api/dashboard'), many(2, '/api/dashboard', anna)])
    expect(countOf(outcomes, '429 rate_limited')).toBeGreaterThan(0)
    expect(other).toStrictEqual(['200', '200'])
  })

  test('of previews of alert rules one runs, and 32 wait', async () => {
    const rule = { kind: 'node_silent', name: 'Silent', nodes: { kind: 'all' }, afterMinutes: 60, destinations: [] }
    const previews = Array.from({ length: 40 }, () => outcomeOf(admin.send('POST', '/api/alerts/rules/preview', rule)))
    const outcomes = await Promise.all(previews)
    expect([countOf(outcomes, '200'), countOf(outcomes, '429 rate_limited')]).toStrictEqual([33, 7])
  })

  test('a failed one frees its place', async () => {
    expect(countOf(await many(30, '/api/nodes/7/positions'), '404 node_not_found')).toBe(30)
    expect(countOf(await many(8, '/api/dashboard'), '200')).toBe(8)
  })
})

describe('exports', () => {
  const start = () => admin.send('GET', '/api/audit/export?format=ndjson')

  test('a third one waits until one of two has been read to its end', async () => {
    fillAudit(3000)
    const [first, second] = await Promise.all([start(), start()])
    let isAnswered = false
    const third = start().then((answer) => {
      isAnswered = true
      return answer
    })
    // Other reads by the same user continue meanwhile.
    expect(await outcomeOf(admin.send('GET', '/api/dashboard'))).toBe('200')
    expect(isAnswered).toBe(false)
    const lines = (await first.text()).trimEnd().split('\n')
    expect(lines.length).toBeGreaterThan(3000)
    expect((await (await third).text()).trimEnd().split('\n')).toHaveLength(lines.length)
    await second.body?.cancel()
  })

  test('a refused one takes no place', async () => {
    for (let n = 0; n < 5; n++) {
      expect((await admin.send('GET', '/api/audit/export?format=pdf')).status).toBe(400)
    }
  })

  test('one that is not read frees its place when its reader leaves, or after a minute', async () => {
    fillAudit(3000)
    const [first, second] = await Promise.all([start(), start()])
    await first.body?.cancel()
    const third = await start()
    app.clock.advance(60_001)
    const [fourth, fifth] = await Promise.all([start(), start()])
    for (const answer of [second, third, fourth, fifth]) {
      expect(answer.status).toBe(200)
      await answer.body?.cancel()
    }
  })
})
