import type { NodeFacts } from '../../../../meshtastic/radio-fact.ts'
import type { Heard } from '../heard.ts'
import type { SIGNATURES } from '../../../../shared/mesh/packets.ts'
import { sql } from 'drizzle-orm'
import { messages, nodes } from '../../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../../db/store.ts'
import { BROADCAST } from '../../../../meshtastic/node-id.ts'
import type { Packet } from '../../../../meshtastic/packet.ts'
import { fitsNodeNum } from '../../../../meshtastic/crypto/public-key.ts'
import type { RadioEvent } from '../../../../meshtastic/radio-event.ts'
import type { NodeUser } from '../../../../meshtastic/payload/user.ts'
import { SIGNATURE_BYTES } from '../../../../meshtastic/crypto/xeddsa.ts'
import { claimOf, claimOfUser, contradicts, type OwnRadios, ownRadios } from './own-radios.ts'
import type { Sightings } from '../packet-window.ts'
import { type Checker, signatureChecker } from './signatures.ts'
import { listLocalSources, type Source } from '../sources.ts'
import { isOwnKind } from '../../../../shared/mesh/link-kinds.ts'
import { MINUTE_MS } from '../../../../shared/time.ts'
import type { Voice } from '../../../../shared/mesh/packets.ts'

/** Who reports something, and how far it is believed. */
export type Judgement = {
  readonly voice: Voice
  /**
   * `taken`: accepted; `set-aside`: does not change the node's data; `spoofed`: sent by somebody else in the node's
   * name, and stored in the packet log only.
   */
  readonly fate: 'taken' | 'set-aside' | 'spoofed'
  /** Why the node is suspected; null: it is not. */
  readonly suspicion: string | null
  /** A suspicion that this lifts. */
  readonly lifts: string | null
  /** Whether names, key and position are left out, because the known ones were signed. */
  readonly keepsUser: boolean
  readonly keepsPosition: boolean
  /** Base64: the key that matches the signature, and an announced one that is not accepted. */
  readonly provenKey: string | null
  readonly refusedKey: string | null
  readonly signature: (typeof SIGNATURES)[number] | null
  /** The node is one of our radios. */
  readonly isOwn: boolean
}

/** Payloads that need no judgement. */
export const TAKEN: Judgement = {
  voice: 'plain',
  fate: 'taken',
  suspicion: null,
  lifts: null,
  keepsUser: false,
  keepsPosition: false,
  provenKey: null,
  refusedKey: null,
  signature: null,
  isOwn: false,
}
const OWN: Judgement = { ...TAKEN, voice: 'own', isOwn: true }

/** A larger payload is not signed, because it would not fit into a packet. A few bytes below the protocol's limit. */
const MAX_SIGNED_BYTES = 233 - SIGNATURE_BYTES - 8
/** One of our radios that reported within this time reports everything that it sends. */
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
  readonly spoofClaim: string | null
  readonly keySigned: boolean
  readonly nameSigned: boolean
  readonly positionSigned: boolean
}

const value = sql.placeholder

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
      spoofClaim: nodes.spoofClaim,
      keySigned: nodes.keySigned,
      nameSigned: nodes.nameSigned,
      positionSigned: nodes.positionSigned,
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
  signedWays: db
    .select({ way: sql<string>`k.value ->> 'way'` })
    .from(
      sql`json_each(${value('ways')}) k cross join sources s on s.name = k.value ->> 'source'
        where exists (select 1 from (select source_id, gateway, standing from packets
          where from_node_num = k.value ->> 'from' order by id desc limit ${sql.raw(String(LOOK_BACK))}) p
          where p.source_id = s.id and p.gateway is k.value ->> 'gateway' and p.standing = 'signed')`,
    )
    .prepare(),
}))

const suspected = new WeakSet<RadioEvent>()

/** Whether a stored packet seems to come from somebody else. Nothing acts upon the content of such a packet. */
export function isSuspected(event: RadioEvent): boolean {
  return suspected.has(event)
}

/** When each of our radios last reported something to this process, by source. */
const toldAt = prepareOnce(() => new Map<string, number>())

type Question = {
  readonly source: Source
  readonly nodeNum: number
  readonly receivedAt: number
  /** The source speaks for the node. */
  readonly isItself: boolean
  /** One of our radios. */
  readonly isOwn: boolean
  /** The radio in question has reported recently. */
  readonly isLive: boolean
} & (
  | { readonly kind: 'packet'; readonly packet: Packet; readonly isReplayed: boolean; readonly way: string }
  | { readonly kind: 'node'; readonly node: NodeFacts }
)

/**
 * How far each event of a batch is believed, in the order of the batch. `sightings` knows the earlier packets; `now` in
 * milliseconds. `radios` as for `createIngest`.
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
  // A packet's proof counts for later packets of the same node; nodes are independent of each other.
  await Promise.all(
    [...byNode].map(async ([nodeNum, asked]) => {
      const court: Court = {
        known: known.get(nodeNum) ?? null,
        ownIds: new Set(),
        sent,
        signedWays,
        sightings,
        checker,
        now,
      }
      for (const { question } of asked) {
        if (isByItself(question) && question.kind === 'packet' && question.packet.rssi === null)
          court.ownIds.add(question.packet.id)
      }
      for (const { question, index } of asked) {
        const judgement = { ...(await judge(question, court)), isOwn: question.isOwn }
        answers[index] = judgement
        const { event } = batch[index] ?? {}
        if (judgement.suspicion !== null && event !== undefined) suspected.add(event)
        court.known = learn(court.known, question, judgement)
        if (judgement.voice === 'signed' && question.kind === 'packet') court.signedWays.add(question.way)
      }
    }),
  )
  return answers
}

/** State while the events of one node are judged. */
type Court = {
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
  const told = toldAt(store)
  let own: OwnRadios | null = null
  return batch.map(({ source, event }) => {
    const { receivedAt } = event
    if (sources.has(source.name)) told.set(source.name, receivedAt)
    if (event.type === 'my-info') {
      sources.set(source.name, { ...source, localNodeNum: event.nodeNum })
      told.set(source.name, receivedAt)
      own = null
    }
    if (event.type !== 'packet' && event.type !== 'node-info') return null
    own ??= ownRadios(sources.values(), radios !== null)
    const nodeNum = event.type === 'packet' ? event.packet.from : event.node.nodeNum
    const isOwn = own.isOwn(nodeNum)
    const isItself = isOwn && own.speaksFor(source.name, nodeNum)
    const isLive =
      isOwn &&
      [...sources.values()].some(
        ({ name, localNodeNum }) => localNodeNum === nodeNum && (told.get(name) ?? 0) > receivedAt - LIVE_MS,
      )
    const about = { source, nodeNum, receivedAt, isOwn, isItself, isLive }
    if (event.type === 'node-info') return { ...about, kind: 'node', node: event.node }
    const { packet, replayed: isReplayed, gateway = null } = event
    return { ...about, kind: 'packet', packet, isReplayed, way: wayOf(source, nodeNum, gateway) }
  })
}

function wayOf(source: Source, from: number, gateway: number | null): string {
  return JSON.stringify([source.name, from, gateway])
}

async function readKnown(store: Store, nums: readonly number[]): Promise<Map<number, Known>> {
  const rows = await queries(store).known.all({ nums: JSON.stringify(nums) })
  return new Map(rows.map((row) => [row.nodeNum, row]))
}

/** Stored texts that occur in reports of others about one of our radios. */
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
  const found = await queries(store).signedWays.all({ ways: JSON.stringify(rows) })
  return new Set(found.map(({ way }) => way))
}

/** A broadcast that signing firmware would have signed. */
function lacksSignature({ packet, isReplayed, isOwn }: Question & { kind: 'packet' }): boolean {
  const { to, port, pkiEncrypted, signature, isVerifiedByRadio, bytes } = packet
  const isSignable = to === BROADCAST && port !== null && !pkiEncrypted && bytes.length <= MAX_SIGNED_BYTES
  return isSignable && !isOwn && !isReplayed && signature === null && !isVerifiedByRadio
}

async function judge(question: Question, court: Court): Promise<Judgement> {
  if (isByItself(question)) return judgeItself(question, court)
  if (question.kind === 'node') return judgeRemembered(question, court)
  const proof = await prove(question, court)
  return question.isOwn ? judgeOwn(question, court, proof) : judgeStranger(question, court, proof)
}

/** A packet that our radio received from a broker is not the radio's own report. */
function isByItself(question: Question): boolean {
  return question.isItself && !(question.kind === 'packet' && question.packet.viaMqtt && question.packet.rssi === null)
}

/**
 * One of our radios on its own connection. A radio does not hear itself: a packet that it heard in its own name is
 * forged.
 */
function judgeItself(question: Question, { known }: Court): Judgement {
  const claim = known?.spoofClaim ?? null
  if (question.kind === 'node') {
    const { user } = question.node
    return user !== null && claim === claimOfUser(user) ? { ...OWN, lifts: claim } : OWN
  }
  const { packet } = question
  if (packet.rssi !== null) return spoofed(packet, TAKEN)
  return claim !== null && (claim === claimOf(packet) || claim === `packet ${packet.id}`)
    ? { ...OWN, lifts: claim }
    : OWN
}

function isText({ payload }: Packet): boolean {
  return payload.kind === 'text'
}

function spoofed(packet: Packet, judgement: Judgement): Judgement {
  return { ...judgement, voice: 'plain', fate: 'spoofed', suspicion: claimOf(packet) }
}

/** Reports of others about one of our radios, mostly its own broadcasts. */
function judgeOwn({ packet, isLive }: Question & { kind: 'packet' }, court: Court, proof: Proof): Judgement {
  const { known, ownIds, sent, sightings } = court
  const signature = proof.signature
  if (signature === 'valid')
    return { ...TAKEN, voice: 'signed', fate: isText(packet) ? 'taken' : 'set-aside', signature, provenKey: proof.key }
  if (signature === 'invalid' && proof.isCertain) return { ...spoofed(packet, TAKEN), signature }
  const aside: Judgement = { ...TAKEN, fate: 'set-aside', signature }
  const text = sent.get(`${packet.from}:${packet.id}`)
  if (packet.payload.kind === 'text') {
    return text === packet.payload.text ? aside : { ...spoofed(packet, TAKEN), signature }
  }
  if (text === undefined && packet.id !== 0 && (ownIds.has(packet.id) || sightings.knows(packet.from, packet.id)))
    return aside
  const doubt = contradicts(packet, known)
  const isSpoofed = doubt ?? (packet.viaMqtt && isLive)
  if (!isSpoofed) return aside
  const announced = announcedKey(packet)
  const refusedKey = announced !== null && announced !== known?.publicKey ? announced : null
  return { ...spoofed(packet, TAKEN), signature, refusedKey }
}

function judgeStranger(question: Question & { kind: 'packet' }, court: Court, proof: Proof): Judgement {
  const { packet, way } = question
  const { known, signedWays } = court
  const { signature } = proof
  const user = packet.payload.kind === 'nodeinfo' ? packet.payload.user : null
  if (signature === 'invalid' && proof.isCertain) {
    return { ...spoofed(packet, TAKEN), signature, refusedKey: refusable(user, known) }
  }
  const isMissing = known?.keySigned === true && lacksSignature(question) && signedWays.has(way)
  const isForged = user !== null && isForgedKey(user, question.nodeNum, known)
  if (signature === 'valid') {
    // The radio verified it with a key that does not belong to the number, or differs from the one that signed before.
    if (isForged) return { ...TAKEN, voice: 'signed', signature, keepsUser: true, refusedKey: refusable(user, known) }
    return { ...TAKEN, voice: 'signed', signature, provenKey: proof.key }
  }
  const judgement: Judgement = {
    ...TAKEN,
    signature: isMissing ? 'missing' : signature,
    keepsUser: known?.nameSigned === true || (known?.keySigned === true && refusable(user, known) !== null),
    keepsPosition: known?.positionSigned === true,
    refusedKey: known?.keySigned === true || isForged ? refusable(user, known) : null,
  }
  if (isForged) return { ...spoofed(packet, judgement), fate: 'set-aside' }
  return isMissing ? { ...spoofed(packet, judgement), fate: 'set-aside' } : judgement
}

/** An entry of a radio's memory. Its memory of another of our radios may be older than that radio's own report. */
function judgeRemembered({ source, nodeNum, node, isOwn }: Question & { kind: 'node' }, { known }: Court): Judgement {
  if (isOwn) return { ...TAKEN, fate: 'set-aside' }
  const { user } = node
  const isForged = user !== null && isForgedKey(user, nodeNum, known)
  const isSigned = node.hasSigned && isOwnKind(source.kind)
  if (isSigned && !isForged) return { ...TAKEN, voice: 'signed', provenKey: user?.publicKey ?? null }
  const isPinned = known?.keySigned === true || isForged
  return {
    ...TAKEN,
    keepsUser: isForged || known?.nameSigned === true || (isPinned && refusable(user, known) !== null),
    keepsPosition: known?.positionSigned === true,
    refusedKey: isPinned ? refusable(user, known) : null,
  }
}

function announcedKey({ payload }: Packet): string | null {
  return payload.kind === 'nodeinfo' ? payload.user.publicKey : null
}

/** The announced key, when another one is known. */
function refusable(user: NodeUser | null, known: Known | null): string | null {
  const key = user?.publicKey ?? null
  return key !== null && known !== null && known.publicKey !== null && key !== known.publicKey ? key : null
}

/** A key that does not belong to the number, when the known one does; or one beside a key that has signed. */
function isForgedKey(user: NodeUser, nodeNum: number, known: Known | null): boolean {
  const key = refusable(user, known)
  if (key === null || known === null || known.publicKey === null) return false
  return fitsNodeNum(known.publicKey, nodeNum) ? !fitsNodeNum(key, nodeNum) || known.keySigned : false
}

/** `isCertain`: the key is known to be the sender's, so packets that do not match it are from somebody else. */
type Proof = { readonly signature: Judgement['signature']; readonly key: string | null; readonly isCertain: boolean }

/** Finds the key with which the packet is signed. On our own radio's connection, the radio's report is enough. */
async function prove({ source, nodeNum, packet, isOwn }: Question & { kind: 'packet' }, court: Court): Promise<Proof> {
  const { known, checker, now } = court
  if (isOwnKind(source.kind) && packet.isVerifiedByRadio && !isOwn) {
    return { signature: 'valid', key: announcedKey(packet), isCertain: true }
  }
  if (packet.signature === null) return { signature: null, key: null, isCertain: false }
  const announced = announcedKey(packet)
  // No sender makes an incomplete signature. Without this check it would pass as a packet of older firmware.
  if (packet.signature.length !== SIGNATURE_BYTES) return { signature: 'invalid', key: null, isCertain: true }
  const isPinned = known !== null && known.publicKey !== null && (known.keySigned || isOwn)
  const keys = isPinned ? [known.publicKey] : [announced, known?.publicKey ?? null, known?.previousPublicKey ?? null]
  // A key that belongs to the number replaces one that does not.
  const heir = isPinned && !isOwn && announced !== null && isHeir(announced, nodeNum, known) ? [announced] : []
  const tried = [...new Set([...keys, ...heir])].filter((key) => key !== null)
  if (tried.length === 0) return { signature: 'unchecked', key: null, isCertain: false }
  const result = await checker.check(packet, tried, { source: source.name, now })
  if (typeof result === 'string') {
    return { signature: result, key: null, isCertain: result === 'invalid' && (isPinned || announced !== null) }
  }
  if (!isPinned && !isAccepted(result.key, nodeNum, known))
    return { signature: 'unchecked', key: null, isCertain: false }
  return { signature: 'valid', key: result.key, isCertain: true }
}

/**
 * Whether a signing key may stand for the node. Anybody can create a key: it must be the first one known, or match the
 * number if the first one does not.
 */
function isAccepted(key: string, nodeNum: number, known: Known | null): boolean {
  const first = known?.previousPublicKey ?? known?.publicKey ?? null
  if (first === null || key === first) return true
  return fitsNodeNum(key, nodeNum) && !fitsNodeNum(first, nodeNum)
}

function isHeir(key: string, nodeNum: number, known: Known): boolean {
  return fitsNodeNum(key, nodeNum) && known.publicKey !== null && !fitsNodeNum(known.publicKey, nodeNum)
}

/** State for judging the node's next event. */
function learn(known: Known | null, question: Question, judgement: Judgement): Known | null {
  const { nodeNum } = question
  if (judgement.fate === 'spoofed' || (question.isOwn && judgement.voice !== 'own')) return known
  const { user, fix } = saidBy(question)
  const isSigned = judgement.voice === 'signed'
  const before = known ?? { ...NOTHING_KNOWN, nodeNum }
  const says = judgement.keepsUser || judgement.fate !== 'taken' ? null : user
  const place = judgement.keepsPosition || judgement.fate !== 'taken' ? null : fix
  const key = judgement.provenKey ?? says?.publicKey ?? before.publicKey
  const isOtherKey = before.publicKey !== null && key !== before.publicKey
  return {
    ...before,
    longName: says?.longName ?? before.longName,
    shortName: says?.shortName ?? before.shortName,
    publicKey: key,
    previousPublicKey: before.previousPublicKey ?? (isOtherKey ? before.publicKey : null),
    latitude: place?.latitude ?? before.latitude,
    longitude: place?.longitude ?? before.longitude,
    keySigned: judgement.provenKey !== null || (before.keySigned && !isOtherKey),
    nameSigned: before.nameSigned || (isSigned && (says?.longName ?? says?.shortName ?? null) !== null),
    positionSigned: before.positionSigned || (isSigned && place !== null),
  }
}

function saidBy(question: Question): Pick<NodeFacts, 'user' | 'fix'> {
  if (question.kind === 'node') return question.node
  const { payload } = question.packet
  return {
    user: payload.kind === 'nodeinfo' ? payload.user : null,
    fix: payload.kind === 'position' ? payload.fix : null,
  }
}

const NOTHING_KNOWN = {
  longName: null,
  shortName: null,
  publicKey: null,
  previousPublicKey: null,
  latitude: null,
  longitude: null,
  spoofClaim: null,
  keySigned: false,
  nameSigned: false,
  positionSigned: false,
} as const
