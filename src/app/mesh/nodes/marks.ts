import { and, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { nodes, radioMarks } from '../../../db/schema.ts'
import { bind, prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import type { NodeMark } from '../../../meshtastic/link/admin-packets.ts'
import type { Ports, Reader } from '../../base/context.ts'
import { namesOf } from '../../../shared/names.ts'
import { AppError } from '../../http/errors.ts'
import { listSenders } from '../radios/choose-radio.ts'
import { getNode } from './seen.ts'

// Favourite, ignored and muted nodes, here and in the memory of our radios. Decision: docs/decisions/marks-on-both-sides.md

export type Marks = { readonly isFavorite: boolean; readonly isIgnored: boolean; readonly isMuted: boolean }

const FIELDS = {
  favorite: 'isFavorite',
  ignored: 'isIgnored',
  muted: 'isMuted',
} as const satisfies Record<NodeMark, keyof Marks>
const MARKS = namesOf(FIELDS)

/** What a radio is told. */
export type MarkOrder = { readonly nodeNum: number; readonly mark: NodeMark; readonly isSet: boolean }

/** Why a radio does not have a mark that is set here, or has one that is not. */
export const MARK_PROBLEMS = ['waiting', 'unknown_node', 'full', 'not_taken'] as const
type Problem = Exclude<(typeof MARK_PROBLEMS)[number], 'waiting'>

/**
 * How an order turned out so far. `open`: the radio was told while it sent its list, so that the list may be older.
 * `full`: it said that it has no room.
 */
export type Tried = 'open' | 'full' | 'told'

const NONE: Marks = { isFavorite: false, isIgnored: false, isMuted: false }
/** The node of the row that says that a radio was compared before. */
const COMPARED = 0

const value = sql.placeholder
const COLUMNS = { isFavorite: nodes.isFavorite, isIgnored: nodes.isIgnored, isMuted: nodes.isMuted }

const queries = prepareOnce((db) => ({
  agreed: db
    .select()
    .from(radioMarks)
    .where(eq(radioMarks.radioNum, value('radioNum')))
    .prepare(),
  agreedOn: db
    .select()
    .from(radioMarks)
    .where(sql`${radioMarks.nodeNum} in (${value('nodeNum')}, ${sql.raw(String(COMPARED))})`)
    .prepare(),
  wanted: db
    .select({ nodeNum: nodes.nodeNum, ...COLUMNS })
    .from(nodes)
    .where(sql`is_favorite or is_ignored or is_muted or node_num in (select value from json_each(${value('nums')}))`)
    .prepare(),
  wantedOf: db
    .select(COLUMNS)
    .from(nodes)
    .where(eq(nodes.nodeNum, value('nodeNum')))
    .prepare(),
  retry: db
    .update(radioMarks)
    .set({ problem: null })
    .where(and(eq(radioMarks.radioNum, value('radioNum')), eq(radioMarks.nodeNum, value('nodeNum'))))
    .prepare(),
}))

type Agreed = Marks & { readonly problem: string | null }
type Changing = { -readonly [Field in keyof Marks]: Marks[Field] }

/**
 * Compares the marks that a radio has with those that are stored, and makes both the same: what changed on one side
 * since they last agreed is changed on the other one. At first contact, and after the radio lost all its marks, each
 * side gets the marks of the other one. `listed`: all nodes that the radio remembers. Returns the nodes that are
 * changed here, what the radio has to be told, and whether it took something that it was told before.
 */
export async function compareMarks(
  store: Store,
  radioNum: number,
  listed: ReadonlyMap<number, Marks>,
  triedOf: (order: MarkOrder) => Tried | null,
): Promise<{ readonly changed: readonly number[]; readonly orders: readonly MarkOrder[]; readonly hasTaken: boolean }> {
  const rows = await queries(store).agreed.all({ radioNum })
  const agreed = new Map<number, Agreed>(rows.map(({ nodeNum, ...row }) => [nodeNum, row]))
  const isFirst = !agreed.has(COMPARED) || hasLostAll(agreed, listed)
  const marked = [...listed].flatMap(([nodeNum, marks]) => (isMarked(marks) ? [nodeNum] : []))
  const nums = JSON.stringify([...new Set([...marked, ...agreed.keys()])])
  const wanted = new Map((await queries(store).wanted.all({ nums })).map(({ nodeNum, ...row }) => [nodeNum, row]))
  const orders: MarkOrder[] = []
  const changed = new Map<number, Marks>()
  let hasTaken = false
  const statements: Statement[] = agreed.has(COMPARED)
    ? []
    : [note(store, radioNum, COMPARED, { ...NONE, problem: null })]
  for (const nodeNum of new Set([...wanted.keys(), ...agreed.keys()])) {
    if (nodeNum === radioNum || nodeNum === COMPARED) continue
    const before: Agreed = agreed.get(nodeNum) ?? { ...NONE, problem: null }
    const here = wanted.get(nodeNum)
    const there = listed.get(nodeNum)
    const after: Changing & { problem: Problem | null } = { ...NONE, problem: null }
    const set: Changing = { ...(here ?? NONE) }
    for (const mark of here === undefined ? [] : MARKS) {
      const field = FIELDS[mark]
      const order = { nodeNum, mark, isSet: set[field] }
      const tried = triedOf(order)
      const has = there?.[field] ?? false
      const had = before[field]
      after[field] = tried === 'open' ? had : has
      if (tried === 'open') continue
      if (has !== had && has === set[field] && tried !== null) hasTaken = true
      if (has === set[field]) continue
      // What the radio has differs from both: it was changed there. It is news at first contact if it is set.
      if (there !== undefined && (isFirst ? has : has !== had)) set[field] = has
      // A radio marks no node that it does not know, except that it makes an entry for one that it shall ignore.
      else if (there === undefined && mark !== 'ignored') after.problem ??= 'unknown_node'
      else if (tried === null) orders.push(order)
      else after.problem = tried === 'full' ? 'full' : 'not_taken'
    }
    if (here !== undefined && !hasSameMarks(set, here)) {
      changed.set(nodeNum, set)
      statements.push(change(store, nodeNum, here, set))
    }
    if (!isSame(before, after)) statements.push(note(store, radioNum, nodeNum, after))
  }
  const [first, ...others] = statements
  if (first !== undefined) await store.atomic([first, ...others])
  return { changed: [...changed.keys()], orders, hasTaken }
}

/** Nobody takes back all marks between two connections; a reset of the radio's memory does. */
function hasLostAll(agreed: ReadonlyMap<number, Marks>, listed: ReadonlyMap<number, Marks>): boolean {
  const had = [...agreed].filter(([, marks]) => isMarked(marks))
  return had.length > 1 && !had.some(([nodeNum]) => isMarked(listed.get(nodeNum) ?? NONE))
}

function isMarked(marks: Marks): boolean {
  return MARKS.some((mark) => marks[FIELDS[mark]])
}

function hasSameMarks(a: Marks, b: Marks): boolean {
  return MARKS.every((mark) => a[FIELDS[mark]] === b[FIELDS[mark]])
}

function isSame(a: Agreed, b: Agreed): boolean {
  return hasSameMarks(a, b) && a.problem === b.problem
}

function note(store: Store, radioNum: number, nodeNum: number, agreed: Agreed): Statement {
  if (nodeNum !== COMPARED && isSame(agreed, { ...NONE, problem: null })) {
    return store.db.delete(radioMarks).where(and(eq(radioMarks.radioNum, radioNum), eq(radioMarks.nodeNum, nodeNum)))
  }
  const { isFavorite, isIgnored, isMuted, problem } = agreed
  const row = { isFavorite, isIgnored, isMuted, problem }
  return store.db
    .insert(radioMarks)
    .values({ radioNum, nodeNum, ...row })
    .onConflictDoUpdate({ target: [radioMarks.radioNum, radioMarks.nodeNum], set: row })
}

/** Unless somebody changed it meanwhile. */
function change(store: Store, nodeNum: number, from: Marks, to: Marks): Statement {
  const { isFavorite, isIgnored, isMuted } = to
  return store.db
    .update(nodes)
    .set({ isFavorite, isIgnored, isMuted })
    .where(and(eq(nodes.nodeNum, nodeNum), ...MARKS.map((mark) => eq(nodes[FIELDS[mark]], from[FIELDS[mark]]))))
}

/** What a radio has to be told after a node was marked here; nothing before they were compared for the first time. */
export async function ordersFor(store: Store, radioNum: number, nodeNum: number): Promise<readonly MarkOrder[]> {
  const rows = (await queries(store).agreedOn.all({ nodeNum })).filter((row) => row.radioNum === radioNum)
  const wanted = await queries(store).wantedOf.get({ nodeNum })
  if (wanted === undefined || nodeNum === radioNum || !rows.some((row) => row.nodeNum === COMPARED)) return []
  const agreed = rows.find((row) => row.nodeNum === nodeNum)
  if (agreed !== undefined && agreed.problem !== null) {
    await store.atomic([bind(queries(store).retry, { radioNum, nodeNum })])
  }
  return MARKS.flatMap((mark) => {
    const isSet = wanted[FIELDS[mark]]
    return isSet === (agreed?.[FIELDS[mark]] ?? false) ? [] : [{ nodeNum, mark, isSet }]
  })
}

export const markStatesSchema = z.object({
  radios: z.array(
    z.object({
      radio: z.string().describe('As in `links` of GET /api/info'),
      isConnected: z.boolean(),
      isFavorite: z.boolean().describe('Whether the radio has it as a favourite, as it last said'),
      isIgnored: z.boolean().describe('Whether the radio ignores it, as it last said'),
      isMuted: z.boolean().describe('Whether the radio has it as muted, as it last said'),
      problem: z
        .enum(MARK_PROBLEMS)
        .nullable()
        .describe(
          'Why that differs from the node. waiting: the radio has not been told, or not confirmed it yet. unknown_node: it does not remember the node. full: it protects as many nodes as it can. not_taken: it was told and did not do it',
        ),
    }),
  ),
})

/** What each of our radios has of a node's marks. Throws `node_not_found`. */
export async function readMarkStates(
  { store, radio, viewer }: Reader & Pick<Ports, 'radio'>,
  nodeNum: number,
): Promise<z.infer<typeof markStatesSchema>> {
  if (!viewer.permissions.nodes.read) throw new AppError('node_not_found')
  const node = await getNode(store, viewer.view, nodeNum)
  const rows = await queries(store).agreedOn.all({ nodeNum: node.nodeNum })
  const senders = listSenders(radio).filter((sender) => sender.nodeNum !== node.nodeNum)
  return {
    radios: senders.map(({ source, nodeNum: radioNum, isConnected }) => {
      const row = rows.find((each) => each.radioNum === radioNum && each.nodeNum === node.nodeNum)
      const { isFavorite, isIgnored, isMuted } = row ?? NONE
      const isTaken = hasSameMarks(row ?? NONE, node)
      const known = MARK_PROBLEMS.find((name) => name === row?.problem) ?? 'waiting'
      return { radio: source, isConnected, isFavorite, isIgnored, isMuted, problem: isTaken ? null : known }
    }),
  }
}
