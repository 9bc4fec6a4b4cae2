import { eq, sql } from 'drizzle-orm'
import type * as z from 'zod'
import { insertSelect } from '../../../db/insert-select.ts'
import { boardReaders, boards, nodes, users } from '../../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { formatNodeId } from '../../../meshtastic/node-id.ts'
import { MAX_BOARDS, MAX_LISTED_BOARDS } from '../../../shared/mesh/boards.ts'
import { seesNodes } from '../../accounts/access/visible.ts'
import { audit } from '../../audit/audit.ts'
import type { Reader, SignedInCtx } from '../../base/context.ts'
import { AppError } from '../../http/errors.ts'
import { said } from '../../words/words.ts'
import { readPresentNum } from '../nodes/identity/renumbering.ts'
import { type boardListSchema, type boardSchema, type Chart, type NewBoard, parseCharts } from './board.ts'

const value = sql.placeholder

/** `own`: the user whose boards it may read; null: none. What a deactivated user shared is not shared meanwhile. */
const IS_SEEN = sql`(${boards.ownerId} = ${value('own')} or ${users.isActive} and (${boards.sharing} = 'everybody'
  or ${boards.sharing} = 'named' and exists (select 1 from board_readers r
    where r.board_id = ${boards.id} and r.user_id = ${value('userId')})))`

const queries = prepareOnce((db) => {
  const columns = {
    id: boards.id,
    ownerId: boards.ownerId,
    owner: users.username,
    name: boards.name,
    sharing: boards.sharing,
    charts: boards.charts,
  }
  const joined = () => db.select(columns).from(boards).innerJoin(users, eq(users.id, boards.ownerId))
  return {
    list: joined()
      .where(
        sql`${boards.id} in (select id from boards where owner_id = ${value('own')}
            union select board_id from board_readers where user_id = ${value('userId')}
            union select id from (select b.id from boards b join users u on u.id = b.owner_id and u.is_active
              where b.sharing = 'everybody' order by b.id desc limit ${sql.raw(String(MAX_LISTED_BOARDS))}))
          and ${IS_SEEN}`,
      )
      .orderBy(
        sql`${boards.ownerId} is not ${value('own')}`,
        sql`iif(${boards.ownerId} is ${value('own')}, ${boards.position}, lower(${boards.name}))`,
        boards.id,
      )
      .limit(MAX_BOARDS + MAX_LISTED_BOARDS)
      .prepare(),
    byId: joined()
      .where(sql`${boards.id} = ${value('id')} and ${IS_SEEN}`)
      .prepare(),
    byUid: db
      .select({ id: boards.id })
      .from(boards)
      .where(eq(boards.uid, value('uid')))
      .prepare(),
    readers: db
      .select({ name: boardReaders.name })
      .from(boardReaders)
      .where(eq(boardReaders.boardId, value('id')))
      .orderBy(sql`lower(${boardReaders.name})`)
      .prepare(),
    named: db
      .select({ nodeNum: nodes.nodeNum, longName: nodes.longName })
      .from(nodes)
      .where(sql`${nodes.nodeNum} in (select value from json_each(${value('nums')}))`)
      .prepare(),
  }
})

type Found = {
  readonly id: number
  readonly ownerId: number
  readonly owner: string
  readonly name: string
  readonly sharing: typeof boards.$inferSelect.sharing
  readonly charts: string
}
type Board = z.infer<typeof boardSchema>

/** Whoever sees as a user sees what others share with that user, and none of the user's own boards. */
function asReader({ viewer: { user, credential } }: SignedInCtx): { own: number | null; userId: number } {
  const isSeenAs = credential.kind === 'session' && credential.isSeenAs === true
  return { own: isSeenAs ? null : user.id, userId: user.id }
}

/** The viewer's own boards in their order, then those that others share with the viewer, by name. */
export async function listBoards(ctx: SignedInCtx): Promise<z.infer<typeof boardListSchema>> {
  const reader = asReader(ctx)
  const rows = await queries(ctx.store).list.all(reader)
  return { boards: rows.map((row) => headOf(row, reader)), maxBoards: MAX_BOARDS }
}

function headOf({ id, name, owner, ownerId, sharing }: Found, { own }: { readonly own: number | null }) {
  const isOwn = ownerId === own
  return { id, name, owner, isOwn, sharing: isOwn ? sharing : null }
}

/** Throws `not_found`. */
async function findBoard(ctx: SignedInCtx, id: number): Promise<Found> {
  const found = await queries(ctx.store).byId.get({ id, ...asReader(ctx) })
  if (found === undefined) throw new AppError('not_found')
  return found
}

/** A board that the viewer may change. Throws `not_found`, and `forbidden` for one that somebody else shares. */
async function findOwn(ctx: SignedInCtx, id: number): Promise<Found> {
  const found = await findBoard(ctx, id)
  if (found.ownerId !== asReader(ctx).own) throw new AppError('forbidden', 'Only its owner may change a board')
  return found
}

/**
 * A board with the nodes that the viewer sees. A chart without any of them is left out, unless the viewer owns it.
 * Throws `not_found`.
 */
export async function getBoard(ctx: SignedInCtx, id: number): Promise<Board> {
  const found = await findBoard(ctx, id)
  const head = headOf(found, asReader(ctx))
  const shown = await showCharts(ctx, parseCharts(found.charts))
  return {
    ...head,
    readers: head.isOwn ? await listReaders(ctx.store, id) : [],
    charts: shown.filter(({ nodes: some }) => head.isOwn || some.length > 0),
  }
}

/** The charts with the nodes that the viewer sees. */
async function showCharts(ctx: SignedInCtx, charts: readonly Chart[]) {
  const seen = await readSeen(
    ctx,
    charts.flatMap((chart) => chart.nodes),
  )
  return charts.map(({ title, metrics, nodes: nums }) => {
    // Two numbers may have become one node.
    const unique = new Map(nums.flatMap((num) => seen.get(num) ?? []).map((node) => [node.nodeNum, node]))
    return { title, metrics, nodes: [...unique.values()] }
  })
}

/** Charts that come back as the owner saw them keep the nodes that the owner does not see at the moment. */
async function withUnseen(ctx: SignedInCtx, stored: readonly Chart[], given: readonly Chart[]): Promise<Chart[]> {
  const keyOf = ({ title, metrics, nodes: nums }: Chart) => JSON.stringify([title, metrics, nums])
  const rest = (await showCharts(ctx, stored)).map((chart, index) => ({
    key: keyOf({ ...chart, nodes: chart.nodes.map(({ nodeNum }) => nodeNum) }),
    chart: stored[index],
  }))
  return given.map((chart) => {
    const at = rest.findIndex(({ key }) => key === keyOf(chart))
    const [found] = at === -1 ? [] : rest.splice(at, 1)
    return found?.chart ?? chart
  })
}

async function listReaders(store: Store, id: number): Promise<string[]> {
  return (await queries(store).readers.all({ id })).map(({ name }) => name)
}

type SeenNode = Board['charts'][number]['nodes'][number]

/** Those of the nodes that exist for the viewer, by the number that was asked for, which may be an earlier one. */
async function readSeen(
  { store, viewer: { view, permissions } }: Reader,
  all: readonly number[],
): Promise<ReadonlyMap<number, SeenNode>> {
  if (!permissions.nodes.read) return new Map()
  const { named } = queries(store)
  const read = async (nums: readonly number[]) =>
    new Map((await named.all({ nums: JSON.stringify(nums) })).map(({ nodeNum, longName }) => [nodeNum, longName]))
  const asked = [...new Set(all)]
  const known = await read(asked)
  const renumbered = new Map<number, number>()
  for (const num of asked) {
    const present = known.has(num) ? null : await readPresentNum(store, num)
    if (present !== null) renumbered.set(num, present)
  }
  const later = renumbered.size === 0 ? known : new Map([...known, ...(await read([...renumbered.values()]))])
  return new Map(
    asked.flatMap((num) => {
      const nodeNum = renumbered.get(num) ?? num
      const name = later.get(nodeNum)
      if (name === undefined || !seesNodes(view, [nodeNum])) return []
      return [[num, { nodeNum, nodeId: formatNodeId(nodeNum), name }] as const]
    }),
  )
}

/** The node numbers of new charts must be of nodes that the viewer sees. Throws `forbidden`, `node_not_found`. */
async function demandSight(ctx: SignedInCtx, charts: readonly Chart[]): Promise<void> {
  if (!ctx.viewer.permissions.info.read) {
    throw new AppError(
      'forbidden',
      said('This needs {action} access to {resource}', { action: 'read', resource: 'info' }),
      {
        required: { resource: 'info', action: 'read' },
      },
    )
  }
  const nums = charts.flatMap((chart) => chart.nodes)
  const seen = await readSeen(ctx, nums)
  if (!nums.every((num) => seen.has(num))) throw new AppError('node_not_found')
}

/** Throws `too_many_boards`, `forbidden`, `node_not_found`. */
export async function createBoard(ctx: SignedInCtx, board: NewBoard): Promise<Board> {
  await demandSight(ctx, board.charts)
  const { store, viewer } = ctx
  const ownerId = viewer.user.id
  const uid = crypto.randomUUID()
  const { name, sharing, charts, readers } = board
  const id = sql`(select id from boards where uid = ${uid})`
  await store.atomic([
    insertSelect(
      store.db,
      boards,
      {
        uid,
        ownerId,
        name,
        position: sql`(select coalesce(max(position), 0) + 1 from boards where owner_id = ${ownerId})`,
        sharing,
        charts: JSON.stringify(charts),
      },
      sql`where (select count(*) from boards where owner_id = ${ownerId}) < ${MAX_BOARDS}`,
    ),
    ...(sharing === 'nobody' ? [] : [auditSharing(ctx, id, name, null, board)]),
    ...writeReaders(store, uid, readers),
  ])
  const made = await queries(store).byUid.get({ uid })
  if (made === undefined)
    throw new AppError('too_many_boards', said('At most {most} boards are possible', { most: MAX_BOARDS }))
  return getBoard(ctx, made.id)
}

type Sharing = Pick<NewBoard, 'sharing' | 'readers'>

function auditSharing(
  ctx: SignedInCtx,
  boardId: number | ReturnType<typeof sql>,
  name: string,
  before: Sharing | null,
  after: Sharing | null,
): Statement {
  const plain = (of: Sharing | null) => of && { sharing: of.sharing, readers: of.sharing === 'named' ? of.readers : [] }
  const details = { boardId, name, before: plain(before), after: plain(after) }
  return audit(ctx, 'board_shared', details, { onlyIfChanged: true })
}

/** A name keeps the user whom it meant first, also when the user has got another name. */
function writeReaders({ db }: Store, uid: string, names: readonly string[]): Statement[] {
  const list = JSON.stringify(names)
  const id = sql`(select id from boards where uid = ${uid})`
  return [
    db.delete(boardReaders).where(sql`board_id = ${id} and name not in (select value from json_each(${list}))`),
    insertSelect(
      db,
      boardReaders,
      {
        boardId: sql`b.id`,
        name: sql`x.value`,
        userId: sql`(select u.id from users u where lower(u.username) = lower(x.value))`,
      },
      sql`from boards b cross join json_each(${list}) x where b.uid = ${uid}
        on conflict (board_id, name) do update set user_id = coalesce(user_id, excluded.user_id)`,
    ),
  ]
}

/** Replaces one of the viewer's boards. Throws `not_found`, `forbidden`, `node_not_found`. */
export async function replaceBoard(ctx: SignedInCtx, id: number, board: NewBoard): Promise<Board> {
  const { sharing: sharedBefore, name: nameBefore, charts: stored } = await findOwn(ctx, id)
  await demandSight(ctx, board.charts)
  const { store } = ctx
  const before = { sharing: sharedBefore, readers: await listReaders(store, id) }
  const { name, sharing, readers } = board
  const charts = await withUnseen(ctx, parseCharts(stored), board.charts)
  const uid = (await store.db.select({ uid: boards.uid }).from(boards).where(eq(boards.id, id)).get())?.uid ?? ''
  const isShared = sharing !== 'nobody' || before.sharing !== 'nobody'
  const isSame =
    sharing === before.sharing &&
    (sharing !== 'named' || readers.toSorted().join() === before.readers.toSorted().join())
  await store.atomic([
    store.db
      .update(boards)
      .set({ name, sharing, charts: JSON.stringify(charts) })
      .where(eq(boards.id, id)),
    ...(isShared && !isSame ? [auditSharing(ctx, id, nameBefore, before, board)] : []),
    ...writeReaders(store, uid, readers),
  ])
  return getBoard(ctx, id)
}

/** Puts the viewer's own boards into this order; those that are not named follow. */
export async function orderBoards(ctx: SignedInCtx, ids: readonly number[]): Promise<void> {
  const { store, viewer } = ctx
  const place = sql`(select x.key from json_each(${JSON.stringify(ids)}) x where x.value = ${boards.id})`
  await store.atomic([
    store.db
      .update(boards)
      .set({ position: sql`coalesce(${place}, ${boards.position} + ${ids.length})` })
      .where(eq(boards.ownerId, viewer.user.id)),
  ])
}

/**
 * Deletes a board of the viewer. Administrators may delete those that others share with them. Throws `not_found`,
 * `forbidden`.
 */
export async function deleteBoard(ctx: SignedInCtx, id: number): Promise<void> {
  const { name, sharing } = await (ctx.viewer.user.isAdmin ? findBoard : findOwn)(ctx, id)
  const { store } = ctx
  const before = { sharing, readers: await listReaders(store, id) }
  await store.atomic([
    store.db.delete(boards).where(eq(boards.id, id)),
    ...(sharing === 'nobody' ? [] : [auditSharing(ctx, id, name, before, null)]),
  ])
}
