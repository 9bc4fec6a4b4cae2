import { desc, lt } from 'drizzle-orm'
import * as z from 'zod'
import { messages } from '../../../db/schema.ts'
import type { Store } from '../../../db/store.ts'
import { BROADCAST, formatNodeId } from '../../../meshtastic/node-id.ts'
import { matchSchema } from '../../automation/kinds/acknowledge.ts'
import { foldText, matchesFolded } from '../../automation/kinds/matcher.ts'
import type { SignedInCtx } from '../../context.ts'
import { nextTurn } from '../../http/limits/next-turn.ts'
import { readText } from '../../mesh/ingest/plan.ts'
import { cleanText } from '../names.ts'
import { readNames } from '../node-names.ts'
import { type Past, type Range, readNodes } from '../preview/past.ts'
import { maySee, ownerOf } from '../rights.ts'
import { watchedList } from '../rules/watched.ts'
import { common } from './fields.ts'
import { type Batch, defineKind, type Event, nodeSubject, type Watching } from './kind.ts'

const messageSchema = z
  .strictObject({
    kind: z.literal('message'),
    ...common,
    match: matchSchema.nullable().default(null).describe('null: any text'),
    from: watchedList.nullable().default(null).describe('null: any sender'),
    channels: z
      .union([z.literal('all'), z.array(z.int().min(0).max(0xffff)).max(50)])
      .default('all')
      .describe('Numbers as in GET /api/channels'),
    direct: z.boolean().default(true).describe('Direct messages to radios of this service'),
  })
  .meta({ id: 'MessageRule', description: 'A message contains one of the words' })

type MessageRule = z.infer<typeof messageSchema>

export const message = defineKind(messageSchema, {
  problemsOf: ({ direct, channels }) =>
    direct || channels === 'all' || channels.length > 0
      ? []
      : [{ path: 'channels', message: 'at least one channel, or direct messages' }],
  heard: findMessages,
  preview: lookBack,
})

/** A text as the rules evaluate it. */
type Text = {
  readonly from: number
  readonly channel: number
  /** It is a direct message. */
  readonly direct: boolean
  readonly text: string
  /** Result of `foldText`, computed once for all rules. */
  readonly folded: string
}

/** Whether a text matches the rule. */
function isWanted({ match, from, channels, direct }: MessageRule, said: Text): boolean {
  if (said.direct ? !direct : channels !== 'all' && !channels.includes(said.channel)) return false
  if (from !== null && !from.includes(said.from)) return false
  return match === null || matchesFolded(match, said.folded)
}

function quote(name: string, { text, direct, channel }: Omit<Text, 'folded'>): string {
  const where = direct ? 'in a direct message' : `on channel ${channel}`
  return `${name} ${where}: “${cleanText(text, 240)}”`
}

/** Sent by other nodes, live, and received for the first time. */
async function findMessages(store: Store, rules: readonly Watching<MessageRule>[], { plan }: Batch): Promise<Event[]> {
  if (rules.length === 0) return []
  const own = new Set(plan.localNodes.values())
  const wanted = plan.news.flatMap(({ packet }) => {
    const said = readText(packet)
    if (said === null || said.isReplay || packet.isEmoji || own.has(packet.from)) return []
    const direct = said.to !== BROADCAST
    const text: Text = {
      from: packet.from,
      channel: packet.channel,
      direct,
      text: said.text,
      folded: foldText(said.text),
    }
    return rules
      .filter(({ rule, owner }) => isWanted(rule, text) && maySee(owner, 'message', { ...text, nodeNum: text.from }))
      .map((watching) => ({ watching, text, packetId: said.packetId }))
  })
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
    nodeNum: text.from,
    channel: text.direct ? null : text.channel,
    direct: text.direct,
    what: quote(nameOf(text.from), text),
  }))
}

async function lookBack(ctx: SignedInCtx, rule: MessageRule, { from }: Range): Promise<Past> {
  const { store, viewer } = ctx
  const owner = ownerOf(viewer)
  const names = new Map((await readNodes(ctx)).map(({ nodeNum, name }) => [nodeNum, name]))
  const texts = await readTexts(store, from)
  const fires = texts
    .filter((text) => maySee(owner, 'message', { ...text, nodeNum: text.from }) && isWanted(rule, text))
    .map((text) => {
      const { from: nodeNum, t: at } = text
      return { at, resolvedAt: null, nodeNum, what: quote(names.get(nodeNum) ?? formatNodeId(nodeNum), text) }
    })
  return { fires, note: null }
}

/** Messages of other nodes since a time, newest first. */
async function readTexts({ db }: Store, since: number): Promise<(Text & { t: number })[]> {
  const all: (Text & { t: number })[] = []
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const rows = await db
      .select()
      .from(messages)
      .where(lt(messages.id, before))
      .orderBy(desc(messages.id))
      .limit(1000)
      .all()
    for (const { fromNodeNum, toNodeNum, channel, text, timestamp, direction, emoji } of rows) {
      if (direction === 'out' || emoji || timestamp < since) continue
      all.push({
        from: fromNodeNum,
        channel,
        direct: toNodeNum !== BROADCAST,
        text,
        folded: foldText(text),
        t: timestamp,
      })
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < 1000 || last.timestamp < since) return all
    before = last.id
    await nextTurn()
  }
}
