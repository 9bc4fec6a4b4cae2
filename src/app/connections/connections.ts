import { asc, eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { insertSelect } from '../../db/insert-select.ts'
import { connections, sources } from '../../db/schema.ts'
import { prepareOnce, type Store } from '../../db/store.ts'
import { MAX_CONNECTION_NAME, MAX_CONNECTIONS } from '../../shared/limits.ts'
import { formatNodeId } from '../../meshtastic/node-id.ts'
import { isOwnKind, LINK_KINDS, type LinkKind } from '../../shared/mesh/link-kinds.ts'
import { getUser } from '../accounts/users/users.ts'
import { audit } from '../audit/audit.ts'
import type { Ports, SignedInCtx } from '../base/context.ts'
import { seal, unseal } from '../base/sealing.ts'
import { AppError } from '../http/errors.ts'
import { timeField } from '../http/fields.ts'
import type { BucketSize } from '../http/limits/buckets.ts'
import { LINK_STATES } from '../mesh/radios/radio.ts'
import { connectionLabel } from './label.ts'
import { virtualNodeOptions, type VirtualNodeOptions } from './virtual-node-options.ts'
import { readTarget, settingsSchema, shownSettings, STORED_KINDS, type StoredKind, type Target } from './settings.ts'

const nameField = z
  .string()
  .min(1)
  .max(MAX_CONNECTION_NAME)
  .regex(/^[^\p{C}]*$/u, 'no control or hidden characters')
  .refine((name) => name === name.trim(), 'no spaces at the ends')
  .describe('Also the name of its source. It cannot be changed, because the history belongs to it')
const positionField = z
  .int()
  .min(0)
  .max(1000)
  .describe('Its place: of several radios that can send, the first one does')

export const newConnectionSchema = z.strictObject({
  kind: z.enum(STORED_KINDS),
  name: nameField,
  enabled: z.boolean().default(true),
  order: positionField.optional(),
  settings: settingsSchema,
})

export const connectionChangesSchema = z.strictObject({
  enabled: z.boolean().optional(),
  order: positionField.optional(),
  settings: settingsSchema.optional().describe('A secret that is missing is kept'),
  virtualNode: virtualNodeOptions
    .nullable()
    .optional()
    .describe('null: no port for apps. Only administrators give a port the view of another user'),
  held: z
    .literal(false)
    .optional()
    .describe('Releases a connection that a restore brought back. Only administrators do that'),
})

export const connectionSchema = z
  .object({
    id: z.int(),
    name: nameField,
    kind: z.enum(LINK_KINDS),
    enabled: z.boolean(),
    order: z.int(),
    fromEnvironment: z.boolean().describe('Set by variables of the environment, and changed only there'),
    settings: settingsSchema
      .nullable()
      .describe('null: in the environment, or sealed under a SESSION_SECRET that this service does not have'),
    link: z
      .object({
        state: z.enum(LINK_STATES),
        since: timeField,
        reason: z.string().nullable(),
        lastFrameAt: timeField.nullable(),
      })
      .nullable()
      .describe('null: it is switched off, or nothing runs it'),
    heldAt: timeField
      .nullable()
      .describe(
        'When a restore brought it back. Until an administrator releases it, it is not opened; one of the environment is, without its port for apps',
      ),
    virtualNode: z
      .object({
        options: virtualNodeOptions,
        state: z.enum(['open', 'waiting', 'failed', 'closed']).describe('waiting: it accepts nobody now'),
        clients: z.int().describe('Apps that are connected'),
        reason: z.string().nullable(),
      })
      .nullable()
      .describe('A port where Meshtastic apps connect as to the radio; null: it has none'),
    waiting: z.int().describe('Packets that wait to be sent. They are lost if the connection is stopped or changed'),
    createdAt: timeField,
    updatedAt: timeField,
  })
  .meta({ id: 'Connection', description: 'A radio or a broker that this service connects to' })

/** Tests of one user. */
const TESTS: BucketSize = { most: 10, everyMs: 60_000 }
const value = sql.placeholder
/** No column may keep its old number, so a change that changes nothing else is seen, too. */
const NEXT_REVISION = sql<number>`(select coalesce(max(revision), 0) + 1 from connections)`

const queries = prepareOnce((db) => ({
  all: db.select().from(connections).orderBy(asc(connections.position), asc(connections.id)).prepare(),
  byId: db
    .select()
    .from(connections)
    .where(eq(connections.id, value('id')))
    .prepare(),
  byName: db
    .select({ id: connections.id })
    .from(connections)
    .where(eq(connections.name, value('name')))
    .prepare(),
  sourceOf: db
    .select({ kind: sources.kind })
    .from(sources)
    .where(eq(sources.name, value('name')))
    .prepare(),
  noteEnvironment: insertSelect(
    db,
    connections,
    {
      name: sql`value ->> 'name'`,
      kind: sql`value ->> 'kind'`,
      enabled: true,
      position: sql`key`,
      revision: 0,
      createdAt: value('now'),
      updatedAt: value('now'),
    },
    sql`from json_each(${value('links')}) where true
      on conflict (name) do update set kind = excluded.kind, sealed = null, enabled = 1
        where sealed is not null or kind <> excluded.kind`,
  ),
}))

type Row = typeof connections.$inferSelect

/** A connection with its settings opened, as decided in docs/decisions/connections.md. `target`: null if the environment has them, or they cannot be opened. */
export type Stored = {
  readonly row: Row
  readonly target: Target | null
  /** Options of the port for apps; null: it has none. */
  readonly virtualNode: VirtualNodeOptions | null
}

type Needs = Pick<Ports, 'store' | 'config'>

/** All of them in their order; those of an environment that this process does not have are included. */
export async function readConnections(needs: Needs): Promise<readonly Stored[]> {
  const rows = await queries(needs.store).all.all()
  return Promise.all(rows.map((row) => openRow(needs, row)))
}

async function openRow(needs: Needs, row: Row): Promise<Stored> {
  const virtualNode = row.virtualNode === null ? null : virtualNodeOptions.safeParse(JSON.parse(row.virtualNode))
  return { row, target: await openTarget(needs, row), virtualNode: virtualNode?.data ?? null }
}

async function openTarget({ config }: Needs, { name, kind, sealed }: Row): Promise<Target | null> {
  const text = sealed === null ? null : await unseal(config.SESSION_SECRET, connectionLabel(name), sealed)
  if (text === null || !isStoredKind(kind)) return null
  try {
    return readTarget(kind, JSON.parse(text), null)
  } catch (error) {
    // Of another version of the service: this one alone has to be entered again.
    if (error instanceof AppError) return null
    throw error
  }
}

const isStoredKind = (kind: LinkKind): kind is StoredKind => STORED_KINDS.some((one) => one === kind)

/** Gives the connections of the environment their rows, which hold what else is decided about them. */
export async function noteEnvironment(
  store: Store,
  links: readonly { readonly name: string; readonly kind: LinkKind }[],
  now: number,
): Promise<void> {
  if (links.length > 0) await queries(store).noteEnvironment.run({ links: JSON.stringify(links), now })
}

/** The connections of this service: those of its environment, and those that were added. */
export async function listConnections(ctx: Pick<Ports, 'store' | 'config' | 'radio' | 'connecting'>) {
  const { connecting } = ctx
  if (connecting === null) return []
  const found = await readConnections(ctx)
  return found
    .filter(({ row }) => row.sealed !== null || isOfEnvironment(ctx, row))
    .map((one) => publicConnection(ctx, one))
}

function isOfEnvironment({ connecting }: Pick<Ports, 'connecting'>, { name }: Row): boolean {
  return connecting?.environment.some((link) => link.name === name) === true
}

function publicConnection(ctx: Pick<Ports, 'radio' | 'connecting'>, { row, target, virtualNode }: Stored) {
  const { id, name, kind, enabled, position, heldAt, createdAt, updatedAt } = row
  const port = ctx.radio?.virtualNodes?.().get(name) ?? CLOSED
  const link = ctx.radio?.links().find((one) => one.name === name) ?? null
  return {
    id,
    name,
    kind,
    enabled,
    order: position,
    fromEnvironment: row.sealed === null,
    settings: target === null ? null : shownSettings(target),
    link: link && { state: link.state, since: link.since, reason: link.reason, lastFrameAt: link.lastFrameAt },
    heldAt,
    virtualNode: virtualNode && {
      options: virtualNode,
      state: port.state,
      clients: port.clients,
      reason: port.reason,
    },
    waiting: ctx.radio?.sendingOf?.(name) ?? 0,
    createdAt,
    updatedAt,
  }
}

const CLOSED = { state: 'closed', clients: 0, reason: null } as const

async function find(ctx: SignedInCtx, id: number): Promise<Stored> {
  const row = await queries(ctx.store).byId.get({ id })
  if (row === undefined || (row.sealed === null && !isOfEnvironment(ctx, row))) {
    throw new AppError('connection_not_found')
  }
  return openRow(ctx, row)
}

/** Adds a connection, and opens it if it is switched on. Throws `invalid_request`. */
export async function addConnection(ctx: SignedInCtx, input: z.output<typeof newConnectionSchema>) {
  const { store } = ctx
  const { kind, name, enabled } = input
  const target = readTarget(kind, input.settings, null)
  await refuseTaken(ctx, name, kind)
  const now = ctx.now()
  const values = {
    name,
    kind,
    enabled,
    position: input.order ?? sql`(select coalesce(max(position), -1) + 1 from connections)`,
    sealed: await sealTarget(ctx, name, target),
    revision: NEXT_REVISION,
    createdAt: now,
    updatedAt: now,
  }
  await store.atomic([
    insertSelect(
      store.db,
      connections,
      values,
      sql`where (select count(*) from connections) < ${MAX_CONNECTIONS}
        and not exists (select 1 from connections where name = ${name})`,
    ),
    audit(
      ctx,
      'connection_updated',
      { name, kind, before: null, after: { enabled, settings: 'entered' } },
      { onlyIfChanged: true },
    ),
  ])
  const made = await queries(store).byName.get({ name })
  if (made === undefined) {
    throw new AppError('invalid_request', `At most ${MAX_CONNECTIONS} connections are possible`)
  }
  await ctx.radio?.applyConnections?.()
  return publicConnection(ctx, await find(ctx, made.id))
}

/** The name of a source says whose history it is. */
async function refuseTaken(ctx: SignedInCtx, name: string, kind: StoredKind): Promise<void> {
  const { byName, sourceOf } = queries(ctx.store)
  const source = await sourceOf.get({ name })
  const isTaken = (await byName.get({ name })) !== undefined || (source !== undefined && source.kind !== kind)
  if (!isTaken) return
  const issue = { path: 'name', message: 'already used' }
  throw new AppError('invalid_request', 'name: already used', { issues: [issue] })
}

function sealTarget({ config }: Pick<Needs, 'config'>, name: string, { settings }: Target): Promise<string> {
  return seal(config.SESSION_SECRET, connectionLabel(name), JSON.stringify(settings))
}

/**
 * Changes a connection. Only this one is closed and opened again, and only if its address or a secret changed. Throws
 * `connection_not_found`, `invalid_request`, `admin_required`, `configuration_changed`.
 */
export async function changeConnection(
  ctx: SignedInCtx,
  id: number,
  changes: z.output<typeof connectionChangesSchema>,
) {
  const { store } = ctx
  const found = await find(ctx, id)
  const { row, target: before } = found
  const { name, kind } = row
  const isElsewhere = row.sealed === null || !isStoredKind(kind)
  if (isElsewhere && [changes.enabled, changes.order, changes.settings].some((one) => one !== undefined)) {
    throw new AppError('invalid_request', 'This connection is set by the environment, and changed only there')
  }
  const virtualNode = changes.virtualNode === undefined ? found.virtualNode : changes.virtualNode
  if (changes.virtualNode != null) await refusePort(ctx, kind, changes.virtualNode)
  const enabled = changes.enabled ?? row.enabled
  const position = changes.order ?? row.position
  const target =
    changes.settings === undefined || !isStoredKind(kind)
      ? before
      : readTarget(kind, changes.settings, before?.settings ?? null)
  const port = virtualNode === null ? null : JSON.stringify(virtualNode)
  const isNewPort = port !== row.virtualNode
  const isNewTarget = JSON.stringify(target) !== JSON.stringify(before)
  const heldAt = releases(ctx, found, changes) ? null : row.heldAt
  const sealed = target !== null && isNewTarget ? await sealTarget(ctx, name, target) : row.sealed
  await store.atomic([
    store.db
      .update(connections)
      .set({ enabled, position, sealed, virtualNode: port, heldAt, revision: NEXT_REVISION, updatedAt: ctx.now() })
      .where(sql`id = ${id} and revision = ${row.revision}
        and (enabled <> ${Number(enabled)} or position <> ${position} or sealed is not ${sealed}
          or virtual_node is not ${port} or held_at is not ${heldAt})`),
    audit(
      ctx,
      'connection_updated',
      {
        name,
        kind,
        before: {
          enabled: row.enabled,
          order: row.position,
          ...(isNewPort ? { virtualNode: found.virtualNode } : {}),
          ...(heldAt === row.heldAt ? {} : { held: 'restore' }),
        },
        after: {
          enabled,
          order: position,
          ...(isNewPort ? { virtualNode } : {}),
          ...(isNewTarget ? { settings: 'changed' } : {}),
          ...(heldAt === row.heldAt ? {} : { held: null }),
        },
      },
      { onlyIfChanged: true },
    ),
  ])
  const after = await find(ctx, id)
  const isDone =
    after.row.enabled === enabled &&
    after.row.position === position &&
    after.row.sealed === sealed &&
    after.row.virtualNode === port &&
    after.row.heldAt === heldAt
  if (!isDone) throw new AppError('configuration_changed', 'Somebody else has changed this connection meanwhile')
  await ctx.radio?.applyConnections?.()
  return publicConnection(ctx, after)
}

/**
 * Whether a connection that a restore brought back is used again. Settings that could not be opened were never in use
 * here: who enters them anew knows where they lead. Throws `admin_required`.
 */
function releases(
  { viewer }: SignedInCtx,
  { row, target }: Stored,
  { held, settings }: z.output<typeof connectionChangesSchema>,
): boolean {
  if (row.heldAt === null) return false
  const { isAdmin } = viewer.user
  if (held === false && !isAdmin) throw new AppError('admin_required')
  return held === false || (isAdmin && target === null && settings !== undefined)
}

export const probeSchema = z.strictObject({
  kind: z.enum(STORED_KINDS),
  settings: settingsSchema,
  connection: z.int().optional().describe('One whose secrets are used where none are given'),
})

/** Connects once to an address, without saving it. Throws `invalid_request`, `connection_not_found`, `rate_limited`. */
export async function testConnection(ctx: SignedInCtx, input: z.output<typeof probeSchema>) {
  const { connecting } = ctx
  if (connecting === null) throw new AppError('unsupported_on_this_runtime')
  const stored = input.connection === undefined ? null : await find(ctx, input.connection)
  if (stored !== null && stored.row.kind !== input.kind) throw new AppError('connection_not_found')
  const target = readTarget(input.kind, input.settings, stored?.target?.settings ?? null)
  const waitMs = await ctx.buckets.take(`connections:test:${ctx.viewer.user.id}`, TESTS, ctx.now())
  if (waitMs > 0) throw new AppError('rate_limited', undefined, { retryAfter: Math.ceil(waitMs / 1000) })
  const found = await connecting.probe(target)
  const details = { kind: input.kind, name: stored?.row.name ?? null, ok: found.problem === null }
  await ctx.store.atomic([audit(ctx, 'connection_tested', details)])
  const { radio } = found
  return { ...found, radio: radio && { ...radio, nodeId: formatNodeId(radio.nodeNum) } }
}

/**
 * Whoever reaches a port has the view of its user. So a user opens ports with their own view, or that of public access,
 * and only administrators those of others, whatever the port had before.
 */
async function refusePort(ctx: SignedInCtx, kind: LinkKind, { userId }: VirtualNodeOptions): Promise<void> {
  if (!isOwnKind(kind)) {
    throw new AppError('invalid_request', 'Apps connect to radios only, and this is none')
  }
  const { id, isAdmin } = ctx.viewer.user
  if (userId === null || userId === id) return
  if (!isAdmin) throw new AppError('admin_required')
  await getUser(ctx.store, userId)
}

/** Deletes a connection; what was heard over it stays. Throws `connection_not_found`, `invalid_request`. */
export async function deleteConnection(ctx: SignedInCtx, id: number): Promise<void> {
  const { row } = await find(ctx, id)
  const { name, kind, enabled } = row
  if (row.sealed === null) {
    throw new AppError('invalid_request', 'This connection is set by the environment, and removed only there')
  }
  await ctx.store.atomic([
    ctx.store.db.delete(connections).where(eq(connections.id, id)),
    audit(ctx, 'connection_updated', { name, kind, before: { enabled }, after: null }, { onlyIfChanged: true }),
  ])
  await ctx.radio?.applyConnections?.()
}

/**
 * The certificate that a device showed at the first connection is the only one that is accepted from then on. Returns
 * the settings with it; null, and nothing is stored, if the connection was changed meanwhile.
 */
export async function pinCertificate(
  needs: Needs,
  { row, target }: Stored,
  fingerprint: string,
): Promise<Target | null> {
  if (target === null || row.sealed === null || !isStoredKind(row.kind)) return null
  const pinned = readTarget(row.kind, { ...target.settings, fingerprint }, null)
  const changed = await needs.store.db
    .update(connections)
    .set({ sealed: await sealTarget(needs, row.name, pinned), revision: NEXT_REVISION })
    .where(sql`id = ${row.id} and sealed = ${row.sealed}`)
    .returning({ id: connections.id })
    .all()
  return changed.length === 0 ? null : pinned
}
