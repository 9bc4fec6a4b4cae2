import { expect, test } from 'vitest'
import { auditOf, type Client, makeUser, refusal, signIn, statuses } from '../service.ts'

const PATH = '/api/automation'

/** A zone where it is midday: at night, quiet hours would be reported first. These scenarios change no clock. */
const TIME_ZONE =
  ['Etc/UTC', 'Asia/Singapore', 'Pacific/Pitcairn'].find((timeZone) => {
    const hour = Number(new Intl.DateTimeFormat('sv-SE', { timeZone, hour: '2-digit' }).format())
    return hour >= 9 && hour < 17
  }) ?? ''

const ANNOUNCE = {
  kind: 'announce',
  name: 'Morning',
  enabled: true,
  timeZone: TIME_ZONE,
  quietHours: { from: '22:00', to: '07:00' },
  when: { kind: 'cron', cron: '30 8 * * 1-5' },
  channels: [0],
  text: 'Good morning from {shortName}',
} as const

const ACKNOWLEDGE = {
  kind: 'acknowledge',
  name: 'Ping',
  match: { mode: 'wildcard', words: ['*ping*'] },
  direct: true,
  answer: { kind: 'text', text: '{hops} hops' },
} as const

const isOf =
  (name: string) =>
  ({ details }: Record<string, unknown>) =>
    Object(details).name === name

/** Rules of automation; there is no radio here, so nothing is ever sent. */
export function automationScenarios(admin: () => Client): void {
  test('a rule is created, found, changed and deleted, each audited with its changes', async () => {
    const made = await admin().send('POST', PATH, ANNOUNCE)
    expect(made.status).toBe(201)
    const { automation } = Object(made.body)
    expect(automation).toMatchObject({
      rule: ANNOUNCE,
      state: 'blocked',
      blockedBy: 'radio_unavailable',
      runs: false,
      nextRunAt: null,
      lastRun: null,
      updatedBy: 'admin',
    })
    const path = `${PATH}/${automation.id}`
    expect(made.headers.get('location')).toBe(path)
    expect((await admin().send('GET', path)).body).toStrictEqual({ automation })
    expect((await admin().send('GET', PATH)).body).toMatchObject({ automations: [automation], answersLastHour: 0 })
    expect((await admin().send('PUT', path, { ...ANNOUNCE, enabled: false })).body).toMatchObject({
      automation: { state: 'off', blockedBy: null },
    })
    expect((await admin().send('GET', `${path}/runs`)).body).toStrictEqual({ runs: [], nextBefore: null })
    expect((await admin().send('DELETE', path)).status).toBe(204)
    expect(await admin().send('GET', path)).toMatchObject(refusal(404, 'automation_not_found'))
    const named = { automationId: automation.id, name: 'Morning', kind: 'announce' }
    expect((await auditOf(admin(), 'automation_updated')).map(({ details }) => details)).toStrictEqual([
      { ...named, before: { ...ANNOUNCE, enabled: false }, after: null },
      { ...named, before: { enabled: true }, after: { enabled: false } },
      { ...named, before: null, after: ANNOUNCE },
    ])
  })

  test('of several simultaneous changes to the version that was read, one succeeds', async () => {
    const made = await admin().send('POST', PATH, { ...ANNOUNCE, name: 'Versions' })
    const path = `${PATH}/${Object(made.body).automation.id}`
    const read = await admin().send('GET', path)
    const ifMatch = { 'If-Match': String(read.headers.get('etag')) }
    const texts = ['one', 'two', 'three', 'four', 'five']
    const answers = await Promise.all(
      texts.map((text) => admin().send('PUT', path, { ...ANNOUNCE, name: 'Versions', text }, ifMatch)),
    )
    expect(statuses(answers)).toStrictEqual([200, 412, 412, 412, 412])
    const winner = answers.find(({ status }) => status === 200)
    expect((await admin().send('GET', path)).body).toStrictEqual(winner?.body)
    expect((await auditOf(admin(), 'automation_updated')).filter(isOf('Versions'))).toHaveLength(2)
    expect(await admin().send('DELETE', path, undefined, ifMatch)).toMatchObject(refusal(412, 'automation_changed'))
    expect((await admin().send('DELETE', path)).status).toBe(204)
  })

  test('a name can be used once, even by simultaneous requests', async () => {
    const rivals = Array.from({ length: 5 }, (_, n) => ({ ...ACKNOWLEDGE, name: n % 2 === 0 ? 'Rival' : 'RIVAL' }))
    const answers = await Promise.all(rivals.map((rule) => admin().send('POST', PATH, rule)))
    expect(statuses(answers)).toStrictEqual([201, 409, 409, 409, 409])
    for (const { status, body } of answers) {
      if (status === 409) expect(body).toMatchObject({ code: 'automation_name_taken' })
    }
  })

  test('a dry run shows times, texts and airtime, and changes nothing', async () => {
    const before = (await admin().send('GET', PATH)).body
    const timed = await admin().send('POST', `${PATH}/dry-run`, { rule: ANNOUNCE })
    expect(timed).toMatchObject({
      status: 200,
      body: {
        messages: [{ kind: 'text', text: 'Good morning from ?', bytes: 19, airtimeMs: 559 }],
        blockedBy: 'radio_unavailable',
        estimate: { runsPerDay: 0.71, airtimeMsPerDay: 399, isUpperBound: false },
        modem: { preset: 'LONG_FAST', isAssumed: true },
      },
    })
    const { nextRuns } = Object(timed.body)
    const time = new Intl.DateTimeFormat('sv-SE', { timeZone: TIME_ZONE, timeStyle: 'short' })
    expect(nextRuns.map(({ at }: { at: number }) => time.format(at))).toStrictEqual(Array(5).fill('08:30'))
    const sample = { text: 'a PING!', direct: true, hopsAway: 3 }
    const tried = await admin().send('POST', `${PATH}/dry-run`, { rule: ACKNOWLEDGE, sample })
    expect(tried.body).toMatchObject({
      messages: [{ text: '3 hops' }],
      sample: { isHeard: true, skippedBy: 'radio_unavailable' },
    })
    expect((await admin().send('GET', PATH)).body).toStrictEqual(before)
  })

  test('invalid input is refused with its path', async () => {
    const wrong = [
      [{ ...ANNOUNCE, timeZone: 'Europe/Atlantis' }, 'timeZone'],
      [{ ...ANNOUNCE, when: { kind: 'cron', cron: '*/10 * * * *' } }, 'when.cron'],
      [{ ...ANNOUNCE, text: '{longName}'.repeat(6) }, 'text'],
      [{ ...ACKNOWLEDGE, direct: false }, 'channels'],
    ] as const
    for (const [rule, path] of wrong) {
      const refused = await admin().send('POST', PATH, rule)
      expect(refused, path).toMatchObject(refusal(400, 'invalid_request'))
      expect(Object(refused.body).issues, path).toMatchObject([{ path }])
    }
  })

  test('each user can do what their permissions allow', async () => {
    const id = await makeUser(admin(), 'operator')
    const operator = await signIn(admin().service, 'operator')
    expect(await operator.send('GET', PATH)).toMatchObject(refusal(403, 'forbidden'))
    const grant = (write: boolean) =>
      admin().send('PUT', `/api/users/${id}/permissions`, { permissions: { automation: { read: true, write } } })
    await grant(false)
    expect((await operator.send('GET', PATH)).status).toBe(200)
    expect(await operator.send('POST', PATH, ANNOUNCE)).toMatchObject(refusal(403, 'forbidden'))
    await grant(true)
    expect((await operator.send('POST', PATH, ANNOUNCE)).status).toBe(201)
    const [latest] = await auditOf(admin(), 'automation_updated')
    expect(latest).toMatchObject({ username: 'operator', details: { before: null, after: ANNOUNCE } })
  })
}
