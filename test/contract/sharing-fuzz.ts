import * as fc from 'fast-check'
import { item } from '../support/mesh/delivery.ts'
import { EMPTY_PAGES } from '../support/mesh/measurements.ts'
import { LOCAL, packet, text } from '../support/mesh/mesh.ts'
import {
  type Eyes,
  isDirect,
  isPublic,
  KINDS,
  markOf,
  maySee,
  packetOf,
  recipientOf,
  replaces,
  type Said,
} from '../support/mesh/said.ts'
import { ADMIN_PASSWORD, type Client, createClient, makeUser, type Service, signIn } from './service.ts'

/** Meshes that are there at the same time, each with its own nodes and channels: a radio has eight channels. */
const TOGETHER = 2
const NODES_EACH = 3
const CHANNELS_EACH = 4
const FIRST_NODE = 0xb0000001
const NODES = Array.from({ length: TOGETHER * NODES_EACH }, (_, n) => FIRST_NODE + n)
/** Requests under way at once. */
const AT_ONCE = 6
const SIGNED_IN_MS = 10 * 60_000
const DAY = 86_400_000

const READ = { read: true, write: false }
const ALL = { dashboard: READ, nodes: READ, messages: READ, info: READ }
const EMPTIED =
  'receptions messages packets proven_packets traceroutes neighbors waypoints positions telemetry telemetry_dirty telemetry_runs telemetry_hourly_runs telemetry_daily_runs channel_positions channel_metrics channel_statuses channel_hearings newcomers deleted_nodes'

type Viewer = {
  /** The channels of each mesh, counted from 0; all channels if `seesAll`. */
  readonly channels: readonly (readonly number[])[]
  readonly seesAll: boolean
  readonly direct: boolean
  readonly seesHidden: boolean
}
type Round = {
  readonly meshes: readonly (readonly Said[])[]
  readonly hidden: readonly number[]
  readonly user: Viewer
  readonly shown: readonly (readonly number[])[]
}

const someMesh = fc.array(
  fc.record({
    kind: fc.constantFrom(...KINDS),
    node: fc.integer({ min: 0, max: NODES_EACH - 1 }),
    channel: fc.integer({ min: 0, max: CHANNELS_EACH - 1 }),
    isDirect: fc.boolean(),
    recipient: fc.option(fc.integer({ min: 0, max: NODES_EACH - 1 }), { nil: undefined }),
    isWithheld: fc.boolean(),
  }),
  { minLength: 1, maxLength: 14 },
)
const each = <T>(some: fc.Arbitrary<T>) => fc.array(some, { minLength: TOGETHER, maxLength: TOGETHER })
const someChannels = each(fc.uniqueArray(fc.integer({ min: 0, max: CHANNELS_EACH - 1 })))
const someRound: fc.Arbitrary<Round> = fc.record({
  meshes: each(someMesh),
  hidden: fc.subarray(NODES),
  user: fc.record({
    channels: someChannels,
    // Rarely: seeing all channels tests the least.
    seesAll: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    direct: fc.boolean(),
    seesHidden: fc.boolean(),
  }),
  shown: someChannels,
})

/** A mark that was found where it must not be, or not found where it must be. */
export type Finding = { readonly round: number; readonly viewer: string; readonly what: string; readonly where: string }

/**
 * Random meshes and scopes, two at a time in one service: a user and an anonymous caller request everything, and each
 * mark of each mesh must reach those who may see it and nobody else. Returns the findings of one round at most, and
 * how many meshes and answers were checked.
 */
export async function fuzzSharing(
  service: Service,
  meshes: number,
  onRound: (round: number) => void,
): Promise<{ findings: Finding[]; meshes: number; items: number; answers: number }> {
  let admin = await signIn(service, 'admin', ADMIN_PASSWORD)
  const made = await admin.send('POST', '/api/tokens', { name: 'fuzz', scopes: ['ingest'] })
  const authorization = `Bearer ${Object(made.body).token}`
  let signedInAt = Date.now()
  const userId = await makeUser(admin, 'fuzz')
  let user = await signIn(service, 'fuzz')
  const rounds = Math.ceil(meshes / TOGETHER)
  const seed = Number(process.env['SHARING_SEED'] ?? Date.now() % 1e9)
  const found = { findings: new Array<Finding>(), meshes: 0, items: 0, answers: 0 }
  for (const [round, given] of fc.sample(someRound, { numRuns: rounds, seed }).entries()) {
    // Public access is changed only within a quarter of an hour after a sign-in.
    if (Date.now() - signedInAt > SIGNED_IN_MS) {
      signedInAt = Date.now()
      admin = await signIn(service, 'admin', ADMIN_PASSWORD)
      user = await signIn(service, 'fuzz')
    }
    const all = given.meshes.flatMap((mesh, index) => mesh.map((said) => placed(said, index)))
    const hidden = new Set(given.hidden)
    await play(service, authorization, all, hidden)
    const eyes: Eyes = {
      read: given.user.seesAll ? 'all' : numbersOf(given.user.channels),
      direct: given.user.direct,
      seesHidden: given.user.seesHidden,
    }
    await open(service, userId, eyes)
    const seen = await answersTo(user, pathsFor(USER_LISTS))
    const shown = numbersOf(given.shown)
    const access = { enabled: true, permissions: ALL, channels: shown, positionPrecisionBits: null }
    await admin.send('PUT', '/api/public-access', { ...access, hideSilentAfterDays: round + 1 })
    const anonymous = anonymousAt(service, `198.18.${round >> 8}.${round & 255}`)
    const told = await answersTo(anonymous, pathsFor(PUBLIC_LISTS))
    const findings = [
      ...compare(seen, all, (said) => maySeeOf(eyes, said, hidden)),
      ...(eyes.seesHidden ? [] : naming(seen, hidden)),
    ].map((one) => ({ round, viewer: `user ${JSON.stringify(eyes)}`, ...one }))
    const isHeard = (num: number) => all.some((said) => said.nodeNum === num && isPublic(said, shown))
    const ofAnonymous = [
      ...compare(told, all, (said, index) => {
        const isReplaced = all.some(
          (later, at) => at > index && later.nodeNum === said.nodeNum && replaces(later, said, shown),
        )
        return (
          !isReplaced &&
          said.isWithheld !== true &&
          maySeeOf({ read: shown, direct: false, seesHidden: false }, said, hidden)
        )
      }),
      ...naming(told, new Set(NODES.filter((num) => hidden.has(num) || !isHeard(num)))),
    ].map((one) => ({ round, viewer: `stranger ${JSON.stringify(shown)}`, ...one }))
    found.meshes += TOGETHER
    found.items += all.length
    found.answers += seen.size + told.size
    found.findings.push(...findings, ...ofAnonymous)
    onRound(round)
    if (found.findings.length > 0) return found
  }
  return found
}

/** An item of one mesh, with a node number and a channel that no other mesh has. */
type Placed = Said & { readonly nodeNum: number }

function placed(said: Said, mesh: number): Placed {
  const nodeNum = NODES[mesh * NODES_EACH + said.node] ?? FIRST_NODE
  const recipient = said.recipient === undefined ? undefined : mesh * NODES_EACH + said.recipient
  return { ...said, channel: mesh * CHANNELS_EACH + said.channel, recipient, nodeNum }
}

const numbersOf = (channels: readonly (readonly number[])[]) =>
  channels.flatMap((some, mesh) => some.map((channel) => mesh * CHANNELS_EACH + channel)).toSorted((a, b) => a - b)

function maySeeOf(eyes: Eyes, { nodeNum, ...said }: Placed, hidden: ReadonlySet<number>): boolean {
  if (!eyes.seesHidden && hidden.has(nodeNum)) return false
  if (!eyes.seesHidden && isDirect(said) && hidden.has(recipientOf(said, NODES))) return false
  return maySee({ ...eyes, seesHidden: true }, said, hidden)
}

/** Empties the meshes and stores these items, one after the other. */
async function play(
  service: Service,
  authorization: string,
  all: readonly Placed[],
  hidden: ReadonlySet<number>,
): Promise<void> {
  await Promise.all(EMPTIED.split(' ').map((table) => service.sql(`delete from ${table}`)))
  for (const statement of EMPTY_PAGES) await service.sql(statement)
  await service.sql('delete from nodes')
  const start = Date.now() - 600_000
  const told = [
    // For nobody else: what they say afterwards decides where they were heard.
    ...NODES.map((from) => packet(text('hello'), { from, to: LOCAL })),
    ...all.map((said, index) => packetOf(said, index, said.nodeNum, NODES)),
  ]
  const packets = told.map((one, index) => ({ data: item(one), receivedAt: start + 1000 * index }))
  const { status, body } = await createClient(service).send(
    'POST',
    '/api/ingest',
    { source: 'fuzz', packets },
    { authorization },
  )
  if (status !== 200 || Object(body).rejected.length > 0) throw new Error(`ingest: ${status} ${JSON.stringify(body)}`)
  await service.sql(`update nodes set is_hidden = 1 where node_num in (${[...hidden].join()})`)
}

async function open({ sql }: Service, userId: number, { read, direct, seesHidden }: Eyes): Promise<void> {
  const channels = read === 'all' ? 'null' : `'${JSON.stringify({ read, write: [] })}'`
  await sql(`update users set channels = ${channels}, direct_read = ${Number(direct)} where id = ${userId}`)
  await sql(`update user_permissions set can_read = 1, can_write = iif(resource = 'nodes', ${Number(seesHidden)}, 0)
    where user_id = ${userId} and resource in ('dashboard', 'nodes', 'messages', 'info')`)
}

/** A caller at this address: each address has its own limit. */
function anonymousAt(service: Service, address: string): Client {
  const client = createClient(service)
  return {
    ...client,
    send: (method, path) => client.send(method, path, undefined, { [service.addressHeader]: address }),
  }
}

const USER_LISTS = [
  '/api/nodes',
  '/api/nodes?q=!b',
  '/api/messages?limit=500',
  '/api/messages?q=word&limit=500',
  '/api/traceroutes?limit=500',
  '/api/neighbors',
  '/api/waypoints',
  '/api/packets?limit=500',
  '/api/channels',
  '/api/dashboard',
  '/api/info',
]
const PUBLIC_LISTS = [
  '/api/nodes',
  '/api/messages?limit=500',
  '/api/traceroutes',
  '/api/neighbors',
  '/api/waypoints',
  '/api/channels',
  '/api/dashboard',
  '/api/info',
  '/api/packets',
]

function pathsFor(lists: readonly string[]): string[] {
  const now = Date.now()
  const metric = `metric=deviceMetrics.uptimeSeconds&from=${now - DAY}&to=${now + DAY / 2}`
  return [
    ...lists,
    ...NODES.flatMap((nodeNum) => [
      `/api/nodes/${nodeNum}`,
      `/api/nodes/${nodeNum}/positions`,
      `/api/telemetry?nodeId=${nodeNum}&${metric}`,
    ]),
  ]
}

async function answersTo(client: Client, paths: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const waiting = [...paths]
  const work = async () => {
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      const { status, body } = await client.send('GET', path)
      if (status === 429) {
        waiting.unshift(path)
        await new Promise((resolve) => setTimeout(resolve, 200))
      } else if (status >= 500) throw new Error(`${path}: ${status}`)
      else found.set(path, typeof body === 'string' ? body : JSON.stringify(body))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return found
}

type Wrong = { readonly what: string; readonly where: string }

/** A number is a mark only if no digit stands beside it. */
const isIn = (body: string, mark: string) => new RegExp(`(?<![\\d.])${mark.replace('.', '\\.')}(?!\\d)`).test(body)

function compare(
  answers: ReadonlyMap<string, string>,
  all: readonly Placed[],
  isFor: (said: Placed, index: number) => boolean,
): Wrong[] {
  return all.flatMap((said, index) => {
    const mark = markOf(said, index)
    const where = [...answers].flatMap(([path, body]) => (isIn(body, mark) ? [path] : []))
    if (isFor(said, index) === where.length > 0) return []
    return [{ what: `${JSON.stringify(said)} ${mark}`, where: where.join(' ') || 'nowhere' }]
  })
}

/** Answers that name a hidden node. The answer at the path of the node itself is a refusal, which does not repeat it. */
function naming(answers: ReadonlyMap<string, string>, nodeNums: ReadonlySet<number>): Wrong[] {
  return [...answers].flatMap(([path, body]) =>
    [...nodeNums].filter((num) => isIn(body, String(num))).map((num) => ({ what: `node ${num}`, where: path })),
  )
}
