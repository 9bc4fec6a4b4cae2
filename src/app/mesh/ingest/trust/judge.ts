import { ownedBy } from '../../../base/owned.ts'
import type { NodeFacts } from '../../../../meshtastic/radio-fact.ts'
import type { Heard } from '../../heard/heard.ts'
import type { SIGNATURES } from '../../../../shared/mesh/packets.ts'
import { sql, type SQL } from 'drizzle-orm'
import { hasPages, recentPages } from '../../../../db/packet-log.ts'
import { messages, nodes } from '../../../../db/schema.ts'
import { type Db, prepareOnce, type Store } from '../../../../db/store.ts'
import { BROADCAST } from '../../../../meshtastic/node-id.ts'
import type { Packet } from '../../../../meshtastic/packet.ts'
import { fitsNodeNum } from '../../../../meshtastic/crypto/public-key.ts'
import { PortNum } from '../../../../meshtastic/gen/ports_pb.ts'
import type { PositionFix } from '../../../../meshtastic/payload/position.ts'
import type { NodeUser } from '../../../../meshtastic/payload/user.ts'
import { canCarrySignature } from '../../../../meshtastic/crypto/signable.ts'
import { SIGNATURE_BYTES } from '../../../../meshtastic/crypto/xeddsa.ts'
import { claimOf, claimOfUser, contradicts, isElsewhere, type OwnRadios, ownRadios } from './own-radios.ts'
import { hasDeviceMetrics } from '../rows/nodes.ts'
import { type Sightings, WINDOW_SIZE } from '../duplicates/packet-window.ts'
import { type Checker, signatureChecker } from './signatures.ts'
import {
  EARSHOT_MS,
  type KnownSource,
  listLocalSources,
  listConfirmedRadios,
  type Source,
} from '../../radios/source-table.ts'
import { distanceMetres } from '../../../../shared/mesh/distance.ts'
import { isOwnKind } from '../../../../shared/mesh/link-kinds.ts'
import { HOUR_MS, MINUTE_MS } from '../../../../shared/time.ts'
import type { KeyDoubt, Suspicion, Trust } from '../../../../shared/mesh/packets.ts'

/** How far a report is trusted, and what it may change. */
export type Judgement = {
  readonly trust: Trust
  /**
   * `taken`: accepted; `set-aside`: does not change the node's data; `spoofed`: sent by somebody else in the node's
   * name, so only stored in the packet log.
   */
  readonly verdict: 'taken' | 'set-aside' | 'spoofed'
  /** Our own radio heard it off the air. Unproven data from a broker never outranks it. */
  readonly isHeard: boolean
  /** By its own time it is older than later packets of its sender. It changes nothing about the node. */
  readonly isStale: boolean
  /** Why the node is suspected; null: it is not. */
  readonly suspicion: { readonly claim: string; readonly reason: Suspicion } | null
  /** The suspicion that this report ends. */
  readonly lifts: string | null
  /** Whether names, key and position are left out, because the known ones were signed. */
  readonly keepsUser: boolean
  readonly keepsPosition: boolean
  /** Whether device metrics are left out, because our own radio heard the known ones recently. */
  readonly keepsMetrics: boolean
  /** See `KEY_DOUBTS`. */
  readonly keyDoubt: KeyDoubt | null
  readonly keepsStatus: boolean
  /** Whether its way to the source is left out, because our own radio heard the node recently. */
  readonly keepsArrival: boolean
  /** Base64: the key that matches the signature, and an announced one that is not accepted. */
  readonly provenKey: string | null
  readonly refusedKey: string | null
  /** Announced names that are not accepted. */
  readonly refusedNames: Names | null
  readonly signature: (typeof SIGNATURES)[number] | null
  /** The node is one of our radios. */
  readonly isOwn: boolean
  /** Our own radio hears the node as another one: no collector speaks for it. */
  readonly endsClaim: boolean
  /** A signature proved the node's key before. */
  readonly hasSigned: boolean
}

export type Names = Pick<NodeUser, 'longName' | 'shortName'>

/** Payloads that need no judgement. */
export const TAKEN: Judgement = {
  trust: 'plain',
  verdict: 'taken',
  isHeard: false,
  isStale: false,
  suspicion: null,
  lifts: null,
  keepsUser: false,
  keepsPosition: false,
  keepsMetrics: false,
  keyDoubt: null,
  keepsStatus: false,
  keepsArrival: false,
  provenKey: null,
  refusedKey: null,
  refusedNames: null,
  signature: null,
  isOwn: false,
  endsClaim: false,
  hasSigned: false,
}
const OWN: Judgement = { ...TAKEN, trust: 'own', isOwn: true, isHeard: true }

/** Firmware 2.8 changes the content of these before it passes them to a client or, unencrypted, to a broker. */
const ALTERED_PORTS: ReadonlySet<number> = new Set([
  PortNum.NODEINFO_APP,
  PortNum.POSITION_APP,
  PortNum.NEIGHBORINFO_APP,
  PortNum.TRACEROUTE_APP,
])
/**
 * A packet that is older than its sender's newest one by more than this is late or replayed. Copies are only recognised
 * for some hours.
 */
const STALE_MS = HOUR_MS
/** In km/h. A node that seems to move faster is used by two senders. */
const FASTEST = 300
/** A radio of ours that reported within this time reports everything that it sends. */
const LIVE_MS = 5 * MINUTE_MS
/** The number of a node's latest packets that are searched for signed ones over the same link. */
const LOOK_BACK = 200

type Known = {
  readonly nodeNum: number
  readonly longName: string | null
  readonly shortName: string | null
  readonly publicKey: string | null
  readonly previousPublicKey: string | null
  readonly latitude: number | null
  readonly longitude: number | null
  readonly refusedPublicKey: string | null
  readonly positionTime: number | null
  readonly telemetryTime: number | null
  readonly lastHeardByRadio: number | null
  readonly spoofClaim: string | null
  readonly keySigned: boolean
  readonly keyHeard: boolean
  readonly keyConfirmed: boolean
  readonly nameSigned: boolean
  readonly nameHeard: boolean
  readonly positionSigned: boolean
  readonly positionHeard: boolean
  readonly deviceMetricsTime: number | null
  readonly metricsHeard: boolean
  readonly statusSigned: boolean
  readonly statusHeard: boolean
}

const value = sql.placeholder

const SIGNED_LATELY = sql`exists (select 1 from (select source_id, gateway, trust_level from packets
  where from_node_num = k.value ->> 'from' order by id desc limit ${sql.raw(String(LOOK_BACK))}) p
  where p.source_id = s.id and p.gateway is k.value ->> 'gateway' and p.trust_level = 'signed')`
// A page tells over which links signatures came, but not how many packets of the node came after them.
const SIGNED_IN_PAGE = sql`exists (select 1 from packet_pages g cross join json_each(g.signed) w
  where ${recentPages(WINDOW_SIZE)} and w.value = (k.value ->> 'from') || ':' || s.id || ':'
    || coalesce(k.value ->> 'gateway', ''))`

const prepareWays = (db: Db, isSigned: SQL) =>
  db
    .select({ way: sql<string>`k.value ->> 'way'` })
    .from(sql`json_each(${value('ways')}) k cross join sources s on s.name = k.value ->> 'source' where ${isSigned}`)
    .prepare()

const queries = prepareOnce((db) => ({
  known: db
    .select({
      nodeNum: nodes.nodeNum,
      longName: nodes.longName,
      shortName: nodes.shortName,
      publicKey: nodes.publicKey,
      previousPublicKey: nodes.previousPublicKey,
      latitude: nodes.latitude,
      longitude: nodes.longitude,
      refusedPublicKey: nodes.refusedPublicKey,
      positionTime: nodes.positionTime,
      telemetryTime: nodes.telemetryTime,
      lastHeardByRadio: nodes.lastHeardByRadio,
      spoofClaim: nodes.spoofClaim,
      keySigned: nodes.keySigned,
      keyHeard: nodes.keyHeard,
      keyConfirmed: nodes.keyConfirmed,
      nameSigned: nodes.nameSigned,
      nameHeard: nodes.nameHeard,
      positionSigned: nodes.positionSigned,
      positionHeard: nodes.positionHeard,
      deviceMetricsTime: nodes.deviceMetricsTime,
      metricsHeard: nodes.metricsHeard,
      statusSigned: nodes.statusSigned,
      statusHeard: nodes.statusHeard,
    })
    .from(nodes)
    .where(sql`${nodes.nodeNum} in (select value from json_each(${value('nums')}))`)
    .prepare(),
  sent: db
    .select({ from: messages.fromNodeNum, id: messages.packetId, text: messages.text })
    .from(messages)
    .where(
      sql`(${messages.fromNodeNum}, ${messages.packetId}) in
        (select value ->> 'from', value ->> 'id' from json_each(${value('keys')}))`,
    )
    .prepare(),
  // A broker's packets are opened with the keys of the collector's radios, which are other sources of its token.
  collected: db
    .select({ source: sql<string>`k.value ->> 'source'`, to: sql<number>`k.value ->> 'to'` })
    .from(
      sql`json_each(${value('sealed')}) k cross join sources s on s.name = k.value ->> 'source'
        where exists (select 1 from sources r where r.local_node_num = k.value ->> 'to' and r.kind = 'ingest'
          and (r.id = s.id or r.token_id = s.token_id))`,
    )
    .prepare(),
  signedWays: prepareWays(db, SIGNED_LATELY),
  packedWays: prepareWays(db, sql`(${SIGNED_LATELY} or ${SIGNED_IN_PAGE})`),
}))

/** Whether a packet seems to come from somebody else. Nothing acts upon the content of such a packet. */
export function isSuspected({ suspicion, keyDoubt }: Judgement): boolean {
  return suspicion !== null || keyDoubt !== null
}

/** When each of our radios last reported something to this process, by source. */
const reportedAtOf = ownedBy((_db: Db) => new Map<string, number>())

type Question = {
  readonly source: Source
  readonly nodeNum: number
  readonly receivedAt: number
  /** The source speaks for the node. */
  readonly isItself: boolean
  /** One of our radios. */
  readonly isOwn: boolean
  /** Only a collector claims it as its radio, and nobody confirmed that: what our own radio hears from it counts more. */
  readonly isOnlyDelivered: boolean
  /** The radio in question has reported recently. */
  readonly isLive: boolean
  /** Our own radio heard it off the air. */
  readonly isHeard: boolean
  /** It was delivered long after it was heard, so newer data may be known by now. */
  readonly isLate: boolean
  readonly endsClaim: boolean
} & (
  | {
      readonly kind: 'packet'
      readonly packet: Packet
      readonly isReplayed: boolean
      readonly gateway: number | null
      readonly way: string
      /** If it was encrypted for one node, the source can tell which key was used. */
      readonly isOpenable: boolean
    }
  | { readonly kind: 'node'; readonly node: NodeFacts }
)

/**
 * How far each event of a batch is trusted, in the order of the batch. `sightings` has the earlier packets; `now` in
 * milliseconds. `radios` as for `createIngest`.
 * Decision: docs/decisions/who-really-said-it.md
 */
export async function judgeBatch(
  store: Store,
  batch: readonly Heard[],
  {
    sightings,
    now,
    radios,
  }: { readonly sightings: Sightings; readonly now: number; readonly radios: readonly string[] | null },
): Promise<readonly Judgement[]> {
  const questions = await ask(store, batch, radios)
  const answers = batch.map(() => TAKEN)
  const byNode = Map.groupBy(
    questions.flatMap((question, index) => (question === null ? [] : [{ question, index }])),
    ({ question }) => question.nodeNum,
  )
  if (byNode.size === 0) return answers
  const known = await readKnown(store, [...byNode.keys()])
  const sent = await readSent(store, questions)
  const signedWays = await readSignedWays(store, questions, known)
  const checker = signatureChecker(store)
  // A packet's proof also counts for later packets of the same node. Nodes are independent of each other.
  await Promise.all(
    [...byNode].map(async ([nodeNum, asked]) => {
      const context: JudgeContext = {
        known: known.get(nodeNum) ?? null,
        ownIds: new Set(),
        sent,
        signedWays,
        sightings,
        checker,
        now,
      }
      const inEarshot = asked.map(({ question, index }) => ({ question: withinEarshot(question, context), index }))
      for (const { question } of inEarshot) {
        if (isByItself(question) && question.kind === 'packet' && question.packet.rssi === null)
          context.ownIds.add(question.packet.id)
      }
      for (const { question, index } of inEarshot) {
        const { isOwn, isHeard, endsClaim, receivedAt } = question
        // A signature does not cover the way of a packet.
        const keepsArrival = !isHeard && (context.known?.lastHeardByRadio ?? 0) > receivedAt - EARSHOT_MS
        const judged = { ...(await judge(question, context)), keepsArrival }
        // Somebody else's packet does not show that the node is in earshot.
        const hasSigned = context.known?.keySigned === true
        const judgement = { ...judged, isOwn, isHeard, endsClaim: endsClaim && judged.verdict !== 'spoofed', hasSigned }
        answers[index] = judgement
        context.known = learn(context.known, question, judgement)
        if (judgement.trust === 'signed' && question.kind === 'packet') context.signedWays.add(question.way)
      }
    }),
  )
  return answers
}

/** State while the events of one node are judged. */
type JudgeContext = {
  known: Known | null
  /** Packets of this batch that the radio reported itself. */
  readonly ownIds: Set<number>
  /** Texts by sender and id that are in the database. */
  readonly sent: ReadonlyMap<string, string>
  readonly signedWays: Set<string>
  readonly sightings: Sightings
  readonly checker: Checker
  readonly now: number
}

/** Which events report about a node, and who reports them. */
async function ask(
  store: Store,
  batch: readonly Heard[],
  radios: readonly string[] | null,
): Promise<(Question | null)[]> {
  const sources = new Map((await listLocalSources(store)).map((source) => [source.name, source]))
  const reportedAt = reportedAtOf(store.db)
  let own: OwnRadios | null = null
  const collected = await readCollectedRadios(store, batch)
  const claimed = [...sources.values()].flatMap(({ kind, localNodeNum }) =>
    kind === 'ingest' ? (localNodeNum ?? []) : [],
  )
  const confirmed = await listConfirmedRadios(store, claimed)
  return batch.map(({ source, event, isLate = false }) => {
    const { receivedAt } = event
    if (sources.has(source.name)) reportedAt.set(source.name, receivedAt)
    if (event.type === 'my-info') {
      sources.set(source.name, { ...source, localNodeNum: event.nodeNum })
      reportedAt.set(source.name, receivedAt)
      own = null
    }
    if (event.type !== 'packet' && event.type !== 'node-info') return null
    own ??= ownRadios(sources.values(), radios !== null)
    const isEar =
      isOwnKind(source.kind) || (source.kind === 'ingest' && isOnlyEar(source.name, sources, radios !== null))
    const nodeNum = event.type === 'packet' ? event.packet.from : event.node.nodeNum
    const isOwn = own.isOwn(nodeNum)
    const isItself = isOwn && own.speaksFor(source.name, nodeNum)
    const isLive =
      isOwn &&
      [...sources.values()].some(
        ({ name, localNodeNum }) => localNodeNum === nodeNum && (reportedAt.get(name) ?? 0) > receivedAt - LIVE_MS,
      )
    const isOnlyDelivered = own.isOnlyDelivered(nodeNum) && !confirmed.has(nodeNum)
    const endsClaim = false
    const about = { source, nodeNum, receivedAt, isOwn, isItself, isOnlyDelivered, isLive, isLate, endsClaim }
    if (event.type === 'node-info') {
      return { ...about, kind: 'node', node: event.node, isHeard: isEar && !event.node.viaMqtt }
    }
    const { packet, replayed: isReplayed, gateway = null } = event
    const isHeard = isEar && !packet.viaMqtt && gateway === null
    const said = { ...about, isLate: isLate || (!isHeard && (isReplayed || isPast(packet, receivedAt))) }
    const isOpenable = source.kind !== 'ingest' || collected.has(`${packet.to} ${source.name}`)
    const way = wayOf(source, nodeNum, gateway)
    return { ...said, kind: 'packet', packet, isReplayed, isHeard, gateway, way, isOpenable }
  })
}

/** The nodes to which packets of collectors are encrypted, with the sources of the collectors whose radios they are. */
async function readCollectedRadios(store: Store, batch: readonly Heard[]): Promise<ReadonlySet<string>> {
  const sealed = batch.flatMap(({ source, event }) =>
    source.kind === 'ingest' && event.type === 'packet' && event.packet.pkiEncrypted
      ? [{ source: source.name, to: event.packet.to }]
      : [],
  )
  if (sealed.length === 0) return new Set()
  const rows = await queries(store).collected.all({ sealed: JSON.stringify(sealed) })
  return new Set(rows.map(({ to, source }) => `${to} ${source}`))
}

/** A gateway heard it some time ago. */
function isPast({ rxTime }: Packet, receivedAt: number): boolean {
  return rxTime !== null && receivedAt - rxTime > MINUTE_MS
}

/**
 * If this service has no radios, those of its collectors count as its own. `hasRadios` false: own radios in the
 * database were copied from another service.
 */
function isOnlyEar(name: string, sources: ReadonlyMap<string, KnownSource>, hasRadios: boolean): boolean {
  const isRadio = (sources.get(name)?.localNodeNum ?? null) !== null
  return isRadio && !(hasRadios && [...sources.values()].some(({ kind }) => isOwnKind(kind)))
}

function wayOf(source: Source, from: number, gateway: number | null): string {
  return JSON.stringify([source.name, from, gateway])
}

async function readKnown(store: Store, nums: readonly number[]): Promise<Map<number, Known>> {
  const rows = await queries(store).known.all({ nums: JSON.stringify(nums) })
  return new Map(rows.map((row) => [row.nodeNum, row]))
}

/** Stored texts that other nodes report as sent by one of our radios. */
async function readSent(store: Store, questions: readonly (Question | null)[]): Promise<Map<string, string>> {
  const keys = questions.flatMap((question) =>
    question?.kind === 'packet' && question.isOwn && !question.isItself
      ? [{ from: question.packet.from, id: question.packet.id }]
      : [],
  )
  if (keys.length === 0) return new Map()
  const rows = await queries(store).sent.all({ keys: JSON.stringify(keys) })
  return new Map(rows.map(({ from, id, text }) => [`${from}:${id}`, text]))
}

/** The links over which signed packets arrived earlier, for unsigned packets that should be signed. */
async function readSignedWays(
  store: Store,
  questions: readonly (Question | null)[],
  known: ReadonlyMap<number, Known>,
): Promise<Set<string>> {
  const ways = new Set(
    questions.flatMap((question) =>
      question?.kind === 'packet' && lacksSignature(question) && known.get(question.nodeNum)?.keySigned === true
        ? [question.way]
        : [],
    ),
  )
  if (ways.size === 0) return new Set()
  const rows = [...ways].map((way) => {
    const [source, from, gateway]: unknown[] = JSON.parse(way)
    return { way, source, from, gateway }
  })
  const { signedWays, packedWays } = queries(store)
  const found = await ((await hasPages(store)) ? packedWays : signedWays).all({ ways: JSON.stringify(rows) })
  return new Set(found.map(({ way }) => way))
}

/** A broadcast that signing firmware would have signed. */
function lacksSignature({ packet, isReplayed, isOwn, gateway }: Question & { kind: 'packet' }): boolean {
  const { to, signature, isVerifiedByRadio, from } = packet
  const isSignable = to === BROADCAST && canCarrySignature(packet)
  // A gateway without encryption publishes its own packets before it signs them.
  return isSignable && !isOwn && !isReplayed && gateway !== from && signature === null && !isVerifiedByRadio
}

async function judge(question: Question, context: JudgeContext): Promise<Judgement> {
  if (isByItself(question)) return judgeItself(question, context)
  if (question.kind === 'node') return judgeRemembered(question, context)
  const proof = await prove(question, context)
  if (question.isOwn) return judgeOwn(question, context, proof)
  const doubt = doubtOfKey(question, context.known)
  if (doubt === 'other') return judgeOtherKey(question)
  const judgement = { ...judgeForeign(question, context, proof), keyDoubt: doubt }
  return isStale(question, context.known, judgement.trust === 'signed') ? { ...judgement, isStale: true } : judgement
}

/**
 * A node within range of our own radio is an ordinary node, even if a collector claims it as its own. An entry of a
 * radio's memory does not show that the radio hears the node now.
 */
function withinEarshot(question: Question, { known }: JudgeContext): Question {
  if (!question.isOnlyDelivered) return question
  const since = question.receivedAt - EARSHOT_MS
  const isNear = isHeardSince(question, since) || (known?.lastHeardByRadio ?? 0) > since
  return isNear ? { ...question, isOwn: false, isItself: false, endsClaim: true } : question
}

function isHeardSince(question: Question, since: number): boolean {
  if (!question.isHeard) return false
  return question.kind === 'node' ? (question.node.lastHeard ?? 0) > since : !question.isReplayed
}

/** A packet that our radio received from a broker is not the radio's own report. */
function isByItself(question: Question): boolean {
  return question.isItself && !(question.kind === 'packet' && question.packet.viaMqtt && question.packet.rssi === null)
}

/**
 * Packets that our own radio hears now are on the air now, whatever their sender's clock says. The clock of a signer is
 * that of all of its packets; others could put any time into them.
 */
function isStale(
  { packet: { payload }, isHeard }: Question & { kind: 'packet' },
  known: Known | null,
  isSigned: boolean,
): boolean {
  if (isHeard || known === null) return false
  const { positionTime, telemetryTime } = known
  const newest = latest(positionTime, telemetryTime)
  if (payload.kind === 'position') {
    const fixTime = payload.fix?.time ?? null
    return isSigned ? isBefore(payload.sentTime ?? fixTime, newest) : isBefore(fixTime, positionTime)
  }
  return payload.kind === 'telemetry' && isBefore(payload.time, isSigned ? newest : telemetryTime)
}

function isBefore(time: number | null, newest: number | null): boolean {
  return time !== null && newest !== null && time < newest - STALE_MS
}

/**
 * For one of our radios on its own connection. A radio does not hear itself, so a packet that it heard in its own name
 * is forged.
 */
function judgeItself(question: Question, { known }: JudgeContext): Judgement {
  const claim = known?.spoofClaim ?? null
  if (question.kind === 'node') {
    const { user } = question.node
    return user !== null && claim === claimOfUser(user) ? { ...OWN, lifts: claim } : OWN
  }
  const { packet } = question
  if (packet.rssi !== null) return spoofed(packet, TAKEN, 'own')
  return claim !== null && (claim === claimOf(packet) || claim === `packet ${packet.id}`)
    ? { ...OWN, lifts: claim }
    : OWN
}

function isText({ payload }: Packet): boolean {
  return payload.kind === 'text'
}

function spoofed(packet: Packet, judgement: Judgement, reason: Suspicion): Judgement {
  return { ...judgement, trust: 'plain', verdict: 'spoofed', suspicion: { claim: claimOf(packet), reason } }
}

/** For reports of other nodes about one of our radios, mostly copies of its own broadcasts. */
function judgeOwn({ packet, isLive }: Question & { kind: 'packet' }, context: JudgeContext, proof: Proof): Judgement {
  const { known, ownIds, sent, sightings } = context
  const signature = proof.signature
  if (signature === 'valid')
    return {
      ...TAKEN,
      trust: 'signed',
      verdict: isText(packet) ? 'taken' : 'set-aside',
      signature,
      provenKey: proof.key,
    }
  if (signature === 'invalid') return { ...spoofed(packet, TAKEN, 'signature'), signature }
  const aside: Judgement = { ...TAKEN, verdict: 'set-aside', signature }
  const text = sent.get(`${packet.from}:${packet.id}`)
  if (packet.payload.kind === 'text') {
    return text === packet.payload.text ? aside : { ...spoofed(packet, TAKEN, 'own'), signature }
  }
  if (text === undefined && packet.id !== 0 && (ownIds.has(packet.id) || sightings.knows(packet.from, packet.id)))
    return aside
  const doubt = contradicts(packet, known)
  const isSpoofed = doubt ?? (packet.viaMqtt && isLive)
  if (!isSpoofed) return aside
  const announced = announcedKey(packet)
  const refusedKey = announced !== null && announced !== known?.publicKey ? announced : null
  return { ...spoofed(packet, TAKEN, 'own'), signature, refusedKey }
}

/**
 * A packet encrypted for one node proves its sender, but only if the sender's current key was used, and only to the
 * radio that decrypted it.
 */
function doubtOfKey({ packet, isOpenable }: Question & { kind: 'packet' }, known: Known | null): KeyDoubt | null {
  const { pkiEncrypted, port, publicKey } = packet
  if (!pkiEncrypted || port === null) return null
  if (!isOpenable) return 'unproven'
  return refusable(publicKey, known) === null ? null : 'other'
}

/**
 * Anybody can announce a key in the name of a node, and encrypt with it. Announced keys are kept so that messages of a
 * node with a new key can be read.
 */
function judgeOtherKey({ packet, isReplayed, isLate }: Question & { kind: 'packet' }): Judgement {
  const judgement = { ...spoofed(packet, TAKEN, 'sealed'), keyDoubt: 'other' } as const
  return isReplayed || isLate ? { ...judgement, suspicion: null } : judgement
}

function judgeForeign(question: Question & { kind: 'packet' }, context: JudgeContext, proof: Proof): Judgement {
  const { packet, nodeNum, isHeard, way } = question
  const { known, signedWays } = context
  const { signature, key } = proof
  const user = userOf(packet)
  if (signature === 'invalid') {
    const refused = { refusedKey: refusable(user?.publicKey ?? null, known) }
    return { ...spoofed(packet, TAKEN, 'signature'), signature, ...refused }
  }
  if (key !== null && refusable(key, known) !== null && !outranksKey({ isSigned: true, isHeard }, nodeNum, known)) {
    // If two keys fit the node number, somebody searched for one of them.
    const refused = {
      ...TAKEN,
      signature: 'unchecked',
      keepsUser: true,
      keepsPosition: true,
      keepsStatus: true,
    } as const
    return { ...suspect(packet, refused, 'key'), verdict: 'set-aside', refusedKey: key, refusedNames: user }
  }
  if (key !== null) {
    const isSettled = known !== null && known.spoofClaim !== null && known.spoofClaim === claimOf(packet)
    return { ...TAKEN, trust: 'signed', signature, provenKey: key, lifts: isSettled ? known.spoofClaim : null }
  }
  const isMissing = known?.keySigned === true && lacksSignature(question) && signedWays.has(way)
  const judgement = judgeUnproven(question, known, isMissing ? 'missing' : signature)
  // Somebody else may have used up the budget of the source.
  if (proof.isUnverified === true)
    return { ...judgement, verdict: judgement.suspicion === null ? 'taken' : 'set-aside', suspicion: null }
  if (isMissing) return { ...suspect(packet, judgement, 'unsigned'), verdict: 'set-aside' }
  // The radio that we hear by verified it before it changed it.
  const isVerifiedHere = isHeard && packet.isVerifiedByRadio
  return proof.isAltered === true && !isVerifiedHere ? { ...judgement, verdict: 'set-aside' } : judgement
}

/** For an unproven packet, which only changes data that is not better proven. */
function judgeUnproven(
  question: Question & { kind: 'packet' },
  known: Known | null,
  signature: Judgement['signature'],
): Judgement {
  const { packet, nodeNum, isHeard } = question
  const user = userOf(packet)
  const said = question.isLate ? NOTHING_REFUSED : weighUser(user, { nodeNum, isHeard }, known)
  const kept = {
    keepsPosition: keeps('position', question, known),
    keepsStatus: keeps('status', question, known),
    keepsMetrics: keepsMetrics(question, known),
  }
  const judgement = { ...TAKEN, signature, ...said, ...kept }
  if (said.refusedKey !== null) {
    const isForged = isForgedKey(said.refusedKey, nodeNum, known)
    return isForged ? { ...suspect(packet, judgement, 'key'), verdict: 'set-aside' } : judgement
  }
  if (said.refusedNames !== null) return suspect(packet, judgement, 'name')
  const place = placeOf(packet)
  if (judgement.keepsPosition && place !== null && !question.isLate && isAnotherPlace(place, question, known)) {
    return suspect(packet, judgement, 'position')
  }
  // Data that our own radio hears ends a suspicion that exists only because a broker delivered the same data first.
  const isSettled = isHeard && !said.keepsUser && !judgement.keepsPosition && known !== null
  const claims = [claimOf(packet), `packet ${packet.id}`]
  const lifts = isSettled && known.spoofClaim !== null && claims.includes(known.spoofClaim) ? known.spoofClaim : null
  return { ...judgement, lifts }
}

function suspect(packet: Packet, judgement: Judgement, reason: Suspicion): Judgement {
  return { ...judgement, trust: 'plain', suspicion: { claim: claimOf(packet), reason } }
}

/** For an entry of a radio's memory. Its memory of another of our radios may be older than that radio's own report. */
function judgeRemembered(question: Question & { kind: 'node' }, { known }: JudgeContext): Judgement {
  const { source, nodeNum, node, isOwn, isHeard } = question
  if (isOwn) return { ...TAKEN, verdict: 'set-aside' }
  const { user, fix } = node
  const key = user?.publicKey ?? null
  // That a node has signed proves its key. Its names may be older than its first signature.
  const isSigner = node.hasSigned && isOwnKind(source.kind) && key !== null && fitsNodeNum(key, nodeNum)
  const isOther = refusable(key, known) !== null
  const isProven = isSigner && (!isOther || outranksKey({ isSigned: true, isHeard }, nodeNum, known))
  // A memory may be older than the known data, so different names in it are no contradiction.
  const mayBeNamed = question.isLate || (isProven && isOther)
  const said = mayBeNamed ? NOTHING_REFUSED : weighUser(user, { nodeNum, isHeard }, known)
  const { keepsUser, refusedKey, refusedNames } = said
  const keepsPosition = fix !== null && keeps('position', question, known)
  const kept = { keepsUser, keepsPosition, keepsMetrics: keepsMetrics(question, known) }
  const refused = { refusedKey, refusedNames: refusedKey === null ? null : refusedNames }
  return { ...TAKEN, ...kept, ...refused, provenKey: isProven ? key : null }
}

/** The names and the key that a packet announces. */
function userOf({ payload }: Packet): (Names & Pick<NodeUser, 'publicKey'>) | null {
  if (payload.kind === 'nodeinfo') return payload.user
  if (payload.kind !== 'mapreport') return null
  const { longName, shortName } = payload.report
  return { longName, shortName, publicKey: null }
}

function placeOf({ payload }: Packet): Pick<PositionFix, 'latitude' | 'longitude' | 'precisionBits'> | null {
  if (payload.kind === 'position') return payload.fix
  if (payload.kind !== 'mapreport') return null
  const { latitude, longitude, precisionBits } = payload.report
  return latitude === null || longitude === null ? null : { latitude, longitude, precisionBits }
}

/** Late data is compared with known data when it is stored. There it is dropped without a conflict. */
const NOTHING_REFUSED = { keepsUser: false, refusedKey: null, refusedNames: null } as const

/** Compares unproven names and an unproven key with the known ones. */
function weighUser(
  user: (Names & Pick<NodeUser, 'publicKey'>) | null,
  { nodeNum, isHeard }: { readonly nodeNum: number; readonly isHeard: boolean },
  known: Known | null,
): Pick<Judgement, 'keepsUser' | 'refusedKey' | 'refusedNames'> {
  if (user === null || known === null) return NOTHING_REFUSED
  const { longName, shortName } = user
  const refusedKey = refusable(user.publicKey, known)
  if (refusedKey !== null) {
    if (outranksKey({ isSigned: false, isHeard }, nodeNum, known)) return NOTHING_REFUSED
    return { keepsUser: true, refusedKey, refusedNames: { longName, shortName } }
  }
  const isCertain = known.nameSigned || (known.nameHeard && !isHeard)
  const differs = (said: string | null, before: string | null) => said !== null && said !== before
  const isOther = differs(longName, known.longName) || differs(shortName, known.shortName)
  return { keepsUser: isCertain, refusedKey: null, refusedNames: isCertain && isOther ? { longName, shortName } : null }
}

type Grade = { readonly isSigned: boolean; readonly isHeard: boolean }

/**
 * Whether another key replaces the known one. The first key stays unless the other is more reliable: heard by our own
 * radio, or proven by a signature. If our radio heard the known key and it fits the node number, proof from a broker
 * does not outrank it, because a key that fits a number can be found by search.
 */
function outranksKey({ isSigned, isHeard }: Grade, nodeNum: number, known: Known | null): boolean {
  if (known === null || known.publicKey === null) return true
  if (known.keyConfirmed) return false
  const rank = (isSigned ? 2 : 0) + Number(isHeard)
  if (known.keySigned) return rank > 2 + Number(known.keyHeard)
  if (!known.keyHeard) return rank > 0
  return rank > (fitsNodeNum(known.publicKey, nodeNum) ? 2 : 1)
}

/** Whether a position or a status that nobody proved is left out. */
function keeps(content: 'position' | 'status', { isHeard, receivedAt }: Question, known: Known | null): boolean {
  if (known === null) return false
  if (known[`${content}Signed`]) return true
  return known[`${content}Heard`] && !isHeard && (known.lastHeardByRadio ?? 0) > receivedAt - EARSHOT_MS
}

/** Whether unproven device metrics are left out: by the same rule as a position, for the same time. */
function keepsMetrics({ isHeard, receivedAt }: Question, known: Known | null): boolean {
  if (known === null || !known.metricsHeard || isHeard) return false
  const { lastHeardByRadio, deviceMetricsTime } = known
  return Math.min(lastHeardByRadio ?? 0, deviceMetricsTime ?? 0) > receivedAt - EARSHOT_MS
}

/** Whether a node would have to move faster than `FASTEST` to be there by now. */
function isAnotherPlace(
  place: Pick<PositionFix, 'latitude' | 'longitude' | 'precisionBits'>,
  { receivedAt }: Question,
  known: Known | null,
): boolean {
  if (known === null || !isElsewhere(place, known)) return false
  const hours = Math.max(0, receivedAt - (known.positionTime ?? 0)) / HOUR_MS
  const from = { latitude: known.latitude ?? 0, longitude: known.longitude ?? 0 }
  return distanceMetres(place, from) > FASTEST * 1000 * Math.max(hours, 1 / 60)
}

function announcedKey({ payload }: Packet): string | null {
  return payload.kind === 'nodeinfo' ? payload.user.publicKey : null
}

/** The key, when another one is known. */
function refusable(key: string | null, known: Known | null): string | null {
  return key !== null && known !== null && known.publicKey !== null && key !== known.publicKey ? key : null
}

/** A key that does not fit the node number although the known one does, or that differs from a key that has signed. */
function isForgedKey(key: string, nodeNum: number, known: Known | null): boolean {
  if (known === null || known.publicKey === null || key === known.publicKey) return false
  return known.keySigned || (fitsNodeNum(known.publicKey, nodeNum) && !fitsNodeNum(key, nodeNum))
}

/**
 * `key`: the key that signed the packet; null: nothing is proven. `isAltered`: a radio on the way may have changed the
 * signed content.
 */
type Proof = {
  readonly signature: Judgement['signature']
  readonly key: string | null
  readonly isAltered?: boolean
  /** The signature could not be verified now. It proves nothing and contradicts nothing. */
  readonly isUnverified?: boolean
}

/**
 * Finds the key with which the packet is signed. As in firmware 2.8, only a key whose CRC-32 is the node's number proves
 * anything, and only broadcasts are signed: a signature does not cover the recipient. Our own radio's report that it
 * verified a packet replaces the verification, not these conditions.
 */
async function prove(
  { source, nodeNum, packet, isOwn, endsClaim }: Question & { kind: 'packet' },
  context: JudgeContext,
): Promise<Proof> {
  const { known, checker, now } = context
  const { port, signature } = packet
  // No sender makes an incomplete signature, and firmware drops such packets.
  if (signature !== null && signature.length !== SIGNATURE_BYTES) return { signature: 'invalid', key: null }
  const isVerified = isOwnKind(source.kind) && packet.isVerifiedByRadio && !isOwn
  if (signature === null && !isVerified) return { signature: null, key: null }
  const unchecked: Proof = { signature: 'unchecked', key: null }
  if (packet.to !== BROADCAST || packet.pkiEncrypted || port === null) return unchecked
  const announced = announcedKey(packet)
  const keys = [announced, known?.publicKey, known?.previousPublicKey, known?.refusedPublicKey]
  const fitting = [...new Set(keys)].filter((key) => typeof key === 'string').filter((key) => fitsNodeNum(key, nodeNum))
  const [first] = fitting
  if (first === undefined) return unchecked
  if (isVerified && (announced === first || fitting.length === 1)) return { signature: 'valid', key: first }
  if (signature === null) return unchecked
  const result = await checker.check(packet, fitting, { source: source.name, now })
  if (typeof result === 'object') return { signature: 'valid', key: result.key }
  if (result === 'unchecked') return { ...unchecked, isUnverified: true }
  // A wrong signature is a forgery only if the sender's key is certain and no radio on the way changed the content.
  const isCertain = known !== null && known.publicKey !== null && (known.keySigned || isOwn || endsClaim)
  const isKnown = isCertain && fitting.includes(known.publicKey ?? '')
  if (!isKnown) return unchecked
  return ALTERED_PORTS.has(port) ? { ...unchecked, isAltered: true } : { signature: 'invalid', key: null }
}

/** State for judging the node's next event. */
function learn(known: Known | null, question: Question, judgement: Judgement): Known | null {
  const { nodeNum, isHeard, receivedAt } = question
  if (judgement.verdict === 'spoofed' || (question.isOwn && judgement.trust !== 'own')) return known
  const { user, fix } = saidBy(question)
  const isSigned = judgement.trust === 'signed'
  const before = known ?? { ...NOTHING_KNOWN, nodeNum }
  const says = judgement.keepsUser || judgement.verdict !== 'taken' ? null : user
  const place = judgement.keepsPosition || judgement.verdict !== 'taken' ? null : fix
  const isStatus = saysStatus(question) && !judgement.keepsStatus && judgement.verdict === 'taken'
  const key = judgement.provenKey ?? says?.publicKey ?? before.publicKey
  const isOtherKey = before.publicKey !== null && key !== before.publicKey
  const isKeySaid = judgement.provenKey !== null || (says?.publicKey ?? null) !== null
  const isNamed = (says?.longName ?? says?.shortName ?? null) !== null
  const hasMetrics = !judgement.keepsMetrics && judgement.verdict === 'taken' && saysMetrics(question)
  return {
    ...before,
    longName: says?.longName ?? before.longName,
    shortName: says?.shortName ?? before.shortName,
    publicKey: key,
    previousPublicKey: before.previousPublicKey ?? (isOtherKey ? before.publicKey : null),
    refusedPublicKey: judgement.refusedKey ?? before.refusedPublicKey,
    latitude: place?.latitude ?? before.latitude,
    longitude: place?.longitude ?? before.longitude,
    positionTime: place === null ? before.positionTime : Math.max(before.positionTime ?? 0, place.time ?? receivedAt),
    telemetryTime: latest(before.telemetryTime, sentAt(question)),
    lastHeardByRadio: isHeard ? latest(before.lastHeardByRadio, receivedAt) : before.lastHeardByRadio,
    keySigned: judgement.provenKey !== null || (before.keySigned && !isOtherKey),
    keyHeard: (isHeard && isKeySaid) || (before.keyHeard && !isOtherKey),
    nameSigned: (before.nameSigned && !isOtherKey) || (isSigned && isNamed),
    nameHeard: (before.nameHeard && !isOtherKey) || (isHeard && isNamed),
    positionSigned: (before.positionSigned && !isOtherKey) || (isSigned && place !== null),
    positionHeard: place === null ? before.positionHeard && !isOtherKey : isHeard,
    deviceMetricsTime: hasMetrics ? latest(before.deviceMetricsTime, measuredAt(question)) : before.deviceMetricsTime,
    metricsHeard: hasMetrics ? isHeard : before.metricsHeard,
    statusSigned: isStatus ? isSigned : before.statusSigned && !isOtherKey,
    statusHeard: isStatus ? isHeard : before.statusHeard && !isOtherKey,
  }
}

function latest(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b)
}

/** The time in a node's telemetry, by its own clock. */
function sentAt(question: Question): number | null {
  return question.kind === 'packet' && question.packet.payload.kind === 'telemetry'
    ? question.packet.payload.time
    : null
}

function saysMetrics(question: Question): boolean {
  if (question.kind === 'node') return hasDeviceMetrics(question.node.metrics)
  const { payload } = question.packet
  return payload.kind === 'telemetry' && hasDeviceMetrics(payload.metrics)
}

function measuredAt(question: Question): number | null {
  return question.kind === 'node' ? question.node.lastHeard : (sentAt(question) ?? question.receivedAt)
}

function saidBy(question: Question): Pick<NodeFacts, 'user' | 'fix'> {
  if (question.kind === 'node') return question.node
  const { payload } = question.packet
  return {
    user: payload.kind === 'nodeinfo' ? payload.user : null,
    fix: payload.kind === 'position' ? payload.fix : null,
  }
}

function saysStatus(question: Question): boolean {
  if (question.kind === 'node') return false
  const { payload } = question.packet
  return payload.kind === 'status' && payload.status !== null
}

const NOTHING_KNOWN = {
  longName: null,
  shortName: null,
  publicKey: null,
  previousPublicKey: null,
  latitude: null,
  longitude: null,
  refusedPublicKey: null,
  positionTime: null,
  telemetryTime: null,
  lastHeardByRadio: null,
  spoofClaim: null,
  keySigned: false,
  keyHeard: false,
  keyConfirmed: false,
  nameSigned: false,
  nameHeard: false,
  positionSigned: false,
  positionHeard: false,
  deviceMetricsTime: null,
  metricsHeard: false,
  statusSigned: false,
  statusHeard: false,
} as const
