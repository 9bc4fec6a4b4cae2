import type { JsonObject } from '@bufbuild/protobuf'
import { and, asc, desc, eq, inArray, isNull, sql } from 'drizzle-orm'
import * as z from 'zod'
import { nodes, remoteActions, remoteNodes, remoteSections } from '../../../db/schema.ts'
import { insertSelect } from '../../../db/insert-select.ts'
import type { Statement, Store } from '../../../db/store.ts'
import { nest } from '../../../shared/nested.ts'
import type { LiveSection } from '../device.ts'
import type { StoredSection } from '../records.ts'
import { secretStateSchema } from '../schemas.ts'
import type { RemoteStep } from './port.ts'
import type { RemoteAction } from './schemas.ts'

/** Actions that are kept for each node. */
const KEPT_ACTIONS = 50

export type RemoteRow = {
  readonly nodeNum: number
  readonly publicKey: string | null
  readonly presentKey: string | null
  readonly longName: string | null
  readonly shortName: string | null
  readonly hopsAway: number | null
  readonly firmwareVersion: string | null
  readonly namedAt: number
  readonly namedBy: string | null
}

/** The nodes that were named as own, or one of them. */
export function readRemoteNodes(store: Store, nodeNum: number | null = null): Promise<RemoteRow[]> {
  return Promise.resolve(
    store.db
      .select({
        nodeNum: remoteNodes.nodeNum,
        publicKey: remoteNodes.publicKey,
        presentKey: nodes.publicKey,
        longName: nodes.longName,
        shortName: nodes.shortName,
        hopsAway: nodes.hopsAway,
        firmwareVersion: remoteNodes.firmwareVersion,
        namedAt: remoteNodes.namedAt,
        namedBy: remoteNodes.namedBy,
      })
      .from(remoteNodes)
      .leftJoin(nodes, eq(nodes.nodeNum, remoteNodes.nodeNum))
      .where(nodeNum === null ? undefined : eq(remoteNodes.nodeNum, nodeNum))
      .orderBy(asc(remoteNodes.namedAt), asc(remoteNodes.nodeNum))
      .all(),
  )
}

/** The statement that names a node as own, or trusts its present key. */
export function writeRemoteNode(
  { db }: Store,
  row: { nodeNum: number; publicKey: string | null; namedAt: number; namedBy: string | null },
): Statement {
  return db.insert(remoteNodes).values(row).onConflictDoUpdate({ target: remoteNodes.nodeNum, set: row })
}

export function deleteRemoteNode({ db }: Store, nodeNum: number): Statement {
  return db.delete(remoteNodes).where(eq(remoteNodes.nodeNum, nodeNum))
}

export async function storeRemoteSection(store: Store, nodeNum: number, read: LiveSection): Promise<void> {
  const { section, readAt } = read
  const found = { values: JSON.stringify(read.values), secrets: JSON.stringify(read.secrets), readAt }
  // Nobody may have named the node any more.
  const isNamed = sql`where exists (select 1 from remote_nodes where node_num = ${nodeNum})`
  await insertSelect(store.db, remoteSections, { nodeNum, section, ...found }, isNamed)
    .onConflictDoUpdate({ target: [remoteSections.nodeNum, remoteSections.section], set: found })
    .run()
}

export async function storeRemoteFirmware({ db }: Store, nodeNum: number, version: string): Promise<void> {
  await db.update(remoteNodes).set({ firmwareVersion: version }).where(eq(remoteNodes.nodeNum, nodeNum)).run()
}

/** The sections of a node that were read, in order of their names. */
export async function readRemoteSections(store: Store, nodeNum: number): Promise<StoredSection[]> {
  const rows = await store.db
    .select()
    .from(remoteSections)
    .where(eq(remoteSections.nodeNum, nodeNum))
    .orderBy(asc(remoteSections.section))
    .all()
  return rows.map(({ section, readAt, values, secrets }) => ({
    section,
    readAt,
    values: z.record(z.string(), z.json()).parse(JSON.parse(values)),
    secrets: z.record(z.string(), secretStateSchema).parse(JSON.parse(secrets)),
  }))
}

/** Statements that record an action as begun, and forget the oldest ones of the node. */
export function writeRemoteAction(
  { db }: Store,
  nodeNum: number,
  { id, kind, section, at, by, fields, before }: RemoteAction,
): Statement[] {
  const row = { id, nodeNum, kind, section, state: 'queued', requestedAt: at, requestedBy: by } as const
  const lists = { fields: JSON.stringify(fields), differing: '[]', before: JSON.stringify(before) }
  return [
    db.insert(remoteActions).values({ ...row, ...lists }),
    db.delete(remoteActions).where(
      sql`node_num = ${nodeNum} and settled_at is not null and id not in (select id from remote_actions
        where node_num = ${nodeNum} order by requested_at desc, id limit ${sql.raw(String(KEPT_ACTIONS))})`,
    ),
  ]
}

/** Records how an action stands, unless its outcome is recorded already. `settledAt` null: it is not finished. */
export async function noteRemoteStep(
  { db }: Store,
  id: string,
  { state, reason, detail, differing }: RemoteStep,
  settledAt: number | null,
): Promise<void> {
  await db
    .update(remoteActions)
    .set({ state, reason, detail, differing: JSON.stringify(differing), settledAt })
    .where(and(eq(remoteActions.id, id), isNull(remoteActions.settledAt)))
    .run()
}

/** The actions with these nodes, the latest first. */
export async function readRemoteActions(
  store: Store,
  nodeNums: readonly number[],
): Promise<ReadonlyMap<number, RemoteAction[]>> {
  const rows = await store.db
    .select()
    .from(remoteActions)
    .where(inArray(remoteActions.nodeNum, [...nodeNums]))
    .orderBy(desc(remoteActions.requestedAt), desc(remoteActions.id))
    .all()
  const found = new Map<number, RemoteAction[]>()
  for (const { nodeNum, requestedAt: at, requestedBy: by, fields, differing, before, ...row } of rows) {
    const lists = {
      fields: pathsSchema.parse(JSON.parse(fields)),
      differing: pathsSchema.parse(JSON.parse(differing)),
      before: beforeSchema.parse(JSON.parse(before)),
    }
    found.set(nodeNum, [...(found.get(nodeNum) ?? []), { ...row, ...lists, at, by }])
  }
  return found
}

const pathsSchema = z.array(z.string())
const beforeSchema = z.record(z.string(), z.unknown())

/** Ends the actions that an earlier process began and did not finish: nobody listens to their answers any more. */
export async function loseRemoteActions({ db }: Store, now: number): Promise<void> {
  const isOpen = isNull(remoteActions.settledAt)
  const began = sql`kind <> 'read' and state in ('sent', 'restarting')`
  await db
    .update(remoteActions)
    .set({
      state: sql`iif(${began}, 'unverified', 'failed')`,
      reason: sql`iif(${began}, 'stopped_midway', 'stopped_before')`,
      settledAt: now,
    })
    .where(isOpen)
    .run()
}

/** Values by path, nested as in a change of the section. */
export function nestValues(values: JsonObject): JsonObject {
  const all = Object.entries(values)
  const ofChannels = all.flatMap(([path, value]) => {
    const [, index, inner] = /^channels\.(\d+)\.(.+)$/.exec(path) ?? []
    return index === undefined || inner === undefined ? [] : [{ index, value: [inner, value] as const }]
  })
  if (ofChannels.length === 0) return nest(all)
  const channels = Map.groupBy(ofChannels, ({ index }) => Number(index))
  return { channels: Array.from(channels, ([index, each]) => ({ index, ...nest(each.map(({ value }) => value)) })) }
}
