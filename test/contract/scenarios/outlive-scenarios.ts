import { createECDH, createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { codeAt } from '../../support/factors/oathtool.ts'
import { type Client, createClient, makeUser, signIn, USER_PASSWORD } from '../service.ts'

/** What a user was given that can outlive its right. */
const KINDS = [
  'session',
  'otherSession',
  'token',
  'invitationByThem',
  'invitationToThem',
  'destination',
  'push',
  'passkey',
  'app',
  'recoveryCodes',
  'link',
  'verifiedEmail',
] as const
type Kind = (typeof KINDS)[number]
type State = 'works' | 'held' | 'ended'
type Given = Record<Kind, State>

const ALL_WORK: Given = {
  session: 'works',
  otherSession: 'works',
  token: 'works',
  invitationByThem: 'works',
  invitationToThem: 'works',
  destination: 'works',
  push: 'works',
  passkey: 'works',
  app: 'works',
  recoveryCodes: 'works',
  link: 'works',
  verifiedEmail: 'works',
}

/** A user who has one of each. */
type Holder = {
  readonly id: number
  readonly client: Client
  readonly other: Client
  readonly token: string
  readonly guest: number
}

type Event = {
  /** What takes the right away. */
  readonly run: (admin: Client, holder: Holder) => Promise<{ readonly status: number }>
  /** What does not go on as before. */
  readonly changes: Partial<Given>
}

/** The table of docs/accounts.md: one line for each cell that is not *stays*. */
const EVENTS = {
  'sign-out': {
    run: (_, { client }) => client.send('POST', '/api/auth/logout'),
    // The push of this browser, whichever user made it.
    changes: { session: 'ended', push: 'ended' },
  },
  'a new password of one’s own': {
    run: (_, { client }) => client.send('POST', '/api/auth/change-password', { ...CHANGE }),
    changes: { otherSession: 'ended' },
  },
  'a new password of one’s own, with tokens': {
    run: (_, { client }) => client.send('POST', '/api/auth/change-password', { ...CHANGE, revokeTokens: true }),
    changes: { otherSession: 'ended', token: 'ended' },
  },
  'a password reset': {
    run: (admin, { id }) => admin.send('POST', `/api/users/${id}/reset-password`),
    changes: {
      session: 'ended',
      otherSession: 'ended',
      token: 'ended',
      destination: 'held',
      push: 'held',
      verifiedEmail: 'ended',
    },
  },
  'a reset of second factors': {
    run: (admin, { id }) => admin.send('POST', `/api/users/${id}/reset-second-factor`),
    changes: {
      session: 'ended',
      otherSession: 'ended',
      destination: 'held',
      push: 'held',
      passkey: 'ended',
      app: 'ended',
      recoveryCodes: 'ended',
      verifiedEmail: 'ended',
    },
  },
  'a demotion': {
    run: (admin, { id }) => admin.send('PUT', `/api/users/${id}/admin`, { isAdmin: false }),
    changes: { invitationByThem: 'ended' },
  },
  'a deactivation, even after a reactivation': {
    run: async (admin, { id }) => {
      expect((await admin.send('DELETE', `/api/users/${id}`)).status).toBe(204)
      return admin.send('PUT', `/api/users/${id}`, { isActive: true })
    },
    changes: {
      session: 'ended',
      otherSession: 'ended',
      token: 'ended',
      invitationByThem: 'ended',
      invitationToThem: 'ended',
      destination: 'held',
      push: 'held',
      verifiedEmail: 'ended',
    },
  },
  'an unlinking': {
    run: (admin, { id }) => admin.send('DELETE', `/api/users/${id}/link`),
    changes: { link: 'ended' },
  },
} as const satisfies Record<string, Event>

const CHANGE = { currentPassword: USER_PASSWORD, newPassword: 'another password for one of them' }

let count = 0

async function makeHolder(admin: Client): Promise<Holder> {
  const { service } = admin
  const username = `holder-${++count}`
  const id = await makeUser(admin, username)
  expect((await admin.send('PUT', `/api/users/${id}/admin`, { isAdmin: true })).status).toBe(200)
  const client = await signIn(service, username)
  const { secret, enrolment } = Object((await client.send('POST', '/api/auth/factors/totp')).body)
  const enrolled = await client.send('POST', '/api/auth/factors/totp/confirm', {
    enrolment,
    code: codeAt(secret, Date.now()),
  })
  expect(enrolled.status).toBe(200)
  const other = createClient(service)
  const half = await other.send('POST', '/api/auth/login', { username, password: USER_PASSWORD })
  const attempt = half.headers.getSetCookie().find((line) => line.startsWith('mesh_attempt=')) ?? ''
  const cookie = attempt.split(';', 1)[0] ?? ''
  const [code] = Object(enrolled.body).recoveryCodes
  expect((await other.send('POST', '/api/auth/login/recovery', { code }, { cookie })).status).toBe(200)
  const made = await client.send('POST', '/api/tokens', { name: 'cron', scopes: ['nodes:read'] })
  const hook = { kind: 'webhook', name: 'Hook', settings: { url: 'https://hook.example.org/x' } }
  const keys = createECDH('prime256v1')
  const p256dh = keys.generateKeys().toString('base64url')
  const settings = { endpoint: 'https://push.example.org/x', p256dh, auth: randomBytes(16).toString('base64url') }
  for (const destination of [hook, { kind: 'web_push', name: 'Phone', settings }]) {
    expect((await client.send('POST', '/api/alerts/destinations', destination)).status).toBe(201)
  }
  const guest = await makeUser(admin, `guest-${count}`)
  await insertInvitation(admin, guest, id)
  await insertInvitation(admin, id, 1)
  await service.sql(
    `insert into passkeys (user_id, name, credential_id, public_key, counter, is_backup_eligible, is_backed_up, transports,
      rp_id, created_at) values (${id}, 'Key', 'credential-${id}', 'AA', 0, 0, 0, '[]', 'localhost', 1) returning id`,
  )
  await service.sql(
    `insert into identities (user_id, issuer, subject, created_at)
      values (${id}, 'https://id.example.org', 'holder ${id}', 1) returning id`,
  )
  const email = `${username}@example.org`
  expect((await admin.send('PUT', `/api/users/${id}`, { email })).status).toBe(200)
  await service.sql(
    `insert into verified_emails (user_id, email, verified_at) values (${id}, '${email}', 1) returning id`,
  )
  return { id, client, other, token: Object(made.body).token, guest }
}

/** No provider is configured here, so that the routes make none. */
async function insertInvitation({ service }: Client, userId: number, createdBy: number): Promise<void> {
  const hash = createHash('sha256').update(`invitation ${userId}`).digest('hex')
  const [now, week] = [Date.now(), 7 * 86_400_000]
  await service.sql(`insert into invitations (user_id, token_hash, created_at, expires_at, created_by)
    values (${userId}, '${hash}', ${now}, ${now + week}, ${createdBy}) returning user_id`)
}

async function stateOf(admin: Client, { id, client, other, token, guest }: Holder): Promise<Given> {
  const works = (is: boolean): State => (is ? 'works' : 'ended')
  const isIn = async (one: Client) => Object((await one.send('GET', '/api/auth/status')).body).authenticated === true
  const bearer = { authorization: `Bearer ${token}` }
  const isOpen = async (userId: number) =>
    Object((await admin.send('GET', `/api/users/${userId}/invitation`)).body).invitation !== null
  const { destinations } = Object((await admin.send('GET', `/api/users/${id}/destinations`)).body)
  const stateOfKind = (kind: string): State => {
    const found = destinations.find((one: { kind: string }) => one.kind === kind)
    return found === undefined ? 'ended' : found.heldAt === null ? 'works' : 'held'
  }
  const { user } = Object((await admin.send('GET', `/api/users/${id}`)).body)
  const has = async (query: string) => (await admin.service.sql(query)).length > 0
  return {
    session: works(await isIn(client)),
    otherSession: works(await isIn(other)),
    token: works((await createClient(admin.service).send('GET', '/api/nodes', undefined, bearer)).status === 200),
    invitationByThem: works(await isOpen(guest)),
    invitationToThem: works(await isOpen(id)),
    destination: stateOfKind('webhook'),
    push: stateOfKind('web_push'),
    passkey: works(await has(`select 1 from passkeys where user_id = ${id}`)),
    app: works(await has(`select 1 from totp_factors where user_id = ${id}`)),
    recoveryCodes: works(await has(`select 1 from recovery_codes where user_id = ${id} and used_by is null`)),
    link: works(user.oidcSubject !== null),
    verifiedEmail: works(user.emailVerified),
  }
}

/** What outlives its right: for each event, what ends, is held, or goes on. */
export function outliveScenarios(admin: () => Client): void {
  describe('what a user was given, after', () => {
    test.each(Object.entries<Event>(EVENTS))('%s', async (_, { run, changes }) => {
      const holder = await makeHolder(admin())
      expect(await stateOf(admin(), holder)).toEqual(ALL_WORK)
      expect((await run(admin(), holder)).status).toBeLessThan(300)
      expect(await stateOf(admin(), holder)).toEqual({ ...ALL_WORK, ...changes })
    })
  })
}
