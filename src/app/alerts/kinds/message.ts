import { desc, lt } from 'drizzle-orm'
import * as z from 'zod'
import { messages } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { canReadChannel } from '../../../shared/access/scope.ts'
import { directChannel } from '../../../shared/mesh/channels.ts'
import { MAX_NUMBER } from '../../../meshtastic/channel-identity.ts'
import { BROADCAST, formatNodeId } from '../../../meshtastic/node-id.ts'
import { matchSchema } from '../../automation/kinds/acknowledge.ts'
import { foldText, matchesFolded } from '../../automation/kinds/matcher.ts'
import type { SignedInCtx } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { readText } from '../../mesh/heard/contents.ts'
import { listLocalSources } from '../../mesh/radios/source-table.ts'
import { cleanText } from '../names.ts'
import { readNames } from '../world/node-names.ts'
import { type Past, type Range, readNodes } from '../past/past.ts'
import { maySee, ownerOf, type Requirement } from '../rights.ts'
import { watchedList } from '../world/watched.ts'
import type { Fact } from '../facts.ts'
import { said } from '../../words/words.ts'
import { common } from './fields.ts'
import { type Batch, defineKind, type Event, nodeSubject, type Watching } from './kind.ts'
import { ALERT_NEEDS } from '../../../shared/alerts/alert-needs.ts'

const messageSchema = z
  .strictObject({
    kind: z.literal('message'),
    ...common,
    match: matchSchema.nullable().default(null).describe('null: any text'),
    from: watchedList.nullable().default(null).describe('null: any sender'),
    channels: z
      .union([z.literal('all'), z.array(z.int().min(0).max(MAX_NUMBER)).max(50)])
      .default('all')
      .describe('Numbers as in GET /api/channels'),
    direct: z
      .boolean()
      .default(true)
      .describe('Also direct messages to the radios of this service, and to no other node'),
  })
  .meta({ id: 'MessageRule', description: 'A message contains one of the words' })

type MessageRule = z.infer<typeof messageSchema>

const REQUIRES: Requirement = ALERT_NEEDS.message

export const message = defineKind(messageSchema, {
  requires: REQUIRES,
  problemsOf: ({ direct, channels }) =>
    direct || channels === 'all' || channels.length > 0
      ? []
      : [{ path: 'channels', message: 'at least one channel, or direct messages' }],
  seesNone: ({ direct, channels }, { view }) =>
    channels !== 'all' && !channels.some((channel) => canReadChannel(view, channel)) && !(direct && view.direct.read),
  heard: findMessages,
  preview: lookBack,
})

/** A text as the rules evaluate it. */
type Text = {
  readonly from: number
  /** For a direct message, the channel of its node: see `FIRST_DIRECT`. */
  readonly channel: number
  /** The node that a direct message is for; null: it is for the channel. */
  readonly to: number | null
  readonly text: string
  /** Result of `foldText`, computed once for all rules. */
  readonly folded: string
}

function textOf(said: { from: number; to: number; channel: number; text: string }): Text {
  const { from, to, channel, text } = said
  const place = to === BROADCAST ? { to: null, channel } : { to, channel: directChannel(to) }
  return { from, ...place, text, folded: foldText(text) }
}

/** Whether a text matches the rule. `own`: the radios of this service. */
function isWanted({ match, from, channels, direct }: MessageRule, said: Text, own: ReadonlySet<number>): boolean {
  if (said.to === null ? channels !== 'all' && !channels.includes(said.channel) : !direct || !own.has(said.to)) {
    return false
  }
  if (from !== null && !from.includes(said.from)) return false
  return match === null || matchesFolded(match, said.folded)
}

function quote(name: string, { text, to, channel }: Omit<Text, 'folded'>): Fact {
  return { event: 'message', name, channel: to === null ? channel : null, text: cleanText(text, 240) }
}

function contentsOf({ from: nodeNum, to, channel }: Text) {
  return { nodeNum, channel, direct: to !== null }
}

/** Sent by other nodes, live, and received for the first time. */
async function findMessages(store: Store, rules: readonly Watching<MessageRule>[], { plan }: Batch): Promise<Event[]> {
  if (rules.length === 0) return []
  const texts = plan.news.flatMap(({ packet }) => {
    const said = readText(packet)
    if (said === null || said.isReplay || packet.isEmoji) return []
    const { from, channel } = packet
    return [{ text: textOf({ from, to: said.to, channel, text: said.text }), packetId: said.packetId }]
  })
  if (texts.length === 0) return []
  const stored = (await listLocalSources(store)).flatMap(({ localNodeNum }) => localNodeNum ?? [])
  const own = new Set([...plan.localNodes.values(), ...stored])
  const wanted = texts
    .filter(({ text }) => !own.has(text.from))
    .flatMap(({ text, packetId }) =>
      rules
        .filter(({ rule, owner }) => isWanted(rule, text, own) && maySee(owner, REQUIRES, contentsOf(text)))
        .map((watching) => ({ watching, text, packetId })),
    )
  if (wanted.length === 0) return []
  const nameOf = await readNames(
    store,
    plan,
    wanted.map(({ text }) => text.from),
  )
  return wanted.map(({ watching, text, packetId }) => ({
    watching,
    subject: nodeSubject(text.from),
    key: `${text.from}#${packetId}`,
    ...contentsOf(text),
    fact: quote(nameOf(text.from), text),
  }))
}

/** Texts that are read before other work gets its turn. */
const SLICE = 500
/** Longer lists cost memory and are of no use. */
const MAX_FOUND = 2000
/** Texts that one preview reads. */
const MAX_READ = 200_000

/** Filters while it reads, newest first. */
async function lookBack(ctx: SignedInCtx, rule: MessageRule, { from }: Range): Promise<Past> {
  const owner = ownerOf(ctx.viewer)
  const nodes = await readNodes(ctx)
  const names = new Map(nodes.map(({ nodeNum, name }) => [nodeNum, name]))
  const own = new Set(nodes.flatMap(({ nodeNum, isLocal }) => (isLocal ? [nodeNum] : [])))
  const fires: Past['fires'][number][] = []
  let read = 0
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const rows = await readSlice(ctx.store, before)
    for (const { fromNodeNum, toNodeNum, channel, text: heard, timestamp: at, direction, emoji, keyDoubt } of rows) {
      // As for live messages: one that another sender may have sent fires nothing.
      if (direction === 'out' || emoji || at < from || keyDoubt === 'other') continue
      const text = textOf({ from: fromNodeNum, to: toNodeNum, channel, text: heard })
      if (!isWanted(rule, text, own) || !maySee(owner, REQUIRES, contentsOf(text))) continue
      const fact = quote(names.get(fromNodeNum) ?? formatNodeId(fromNodeNum), text)
      fires.push({ at, resolvedAt: null, nodeNum: fromNodeNum, fact })
      if (fires.length >= MAX_FOUND)
        return { fires, note: said('Only the latest {most} are counted.', { most: MAX_FOUND }) }
    }
    read += rows.length
    const last = rows.at(-1)
    if (last === undefined || rows.length < SLICE || last.timestamp < from) return { fires, note: null }
    if (read >= MAX_READ) return { fires, note: said('Only the latest {most} messages were read.', { most: MAX_READ }) }
    before = last.id
    await nextTurn()
  }
}

/** Messages before an id, newest first. */
function readSlice({ db }: Store, before: number) {
  const { id, fromNodeNum, toNodeNum, channel, text, timestamp, direction, emoji, keyDoubt } = messages
  return db
    .select({ id, fromNodeNum, toNodeNum, channel, text, timestamp, direction, emoji, keyDoubt })
    .from(messages)
    .where(lt(id, before))
    .orderBy(desc(id))
    .limit(SLICE)
    .all()
}
