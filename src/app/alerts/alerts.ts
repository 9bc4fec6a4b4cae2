import { and, desc, eq, inArray, isNull, lt, ne, or, sql } from 'drizzle-orm'
import * as z from 'zod'
import { alertDeliveries, alertDestinations, alerts, users } from '../../db/schema.ts'
import { formatNodeId } from '../../meshtastic/node-id.ts'
import { ALERT_STATES, type AlertState } from '../../shared/alerts/alert-kinds.ts'
import {
  ALERT_DELIVERY_STATES,
  NOTIFICATION_KINDS,
  DESTINATION_KIND_NAMES,
} from '../../shared/alerts/destination-kinds.ts'
import { audit } from '../audit/audit.ts'
import type { SignedInCtx } from '../base/context.ts'
import { AppError } from '../http/errors.ts'
import { nodeIdField, nodeNumField, timeField } from '../http/fields.ts'
import { ofNodesSeenBy, onChannelSeenBy } from '../accounts/access/visible.ts'
import { ALERT_KINDS, type AlertKind, isAlertKind, kindOf } from './kinds/kinds.ts'
import { wordsFor } from '../words/reader.ts'
import type { Words } from '../words/words.ts'
import { factSchema, readFact, tellAlert } from './facts.ts'
import { countOpen, MAX_OPEN } from './findings/open.ts'
import { maySee, ownerOf } from './rights.ts'
import { tellOwner } from '../mesh/live/tell-owner.ts'

export const alertSchema = z
  .object({
    id: z.int(),
    ruleId: z.int(),
    ruleName: z.string(),
    kind: z.enum(ALERT_KINDS),
    state: z
      .enum(ALERT_STATES)
      .describe('pending: the condition has not lasted long enough yet. Single events are resolved immediately'),
    what: z.string().describe('What happened, as a sentence in the language of the request'),
    fact: factSchema.nullable().describe('null: an earlier version recorded it, with the sentence alone'),
    nodeNum: nodeNumField.nullable(),
    nodeId: nodeIdField.nullable(),
    startedAt: timeField.describe('Start of the condition'),
    firedAt: timeField.nullable(),
    resolvedAt: timeField.nullable(),
    acknowledgedAt: timeField.nullable(),
    acknowledgedBy: z.string().nullable(),
    notifiedAt: timeField.nullable().describe('null: its owner has not been notified'),
    heldUntil: timeField
      .nullable()
      .describe('When your quiet hours end, which hold a message about it; null: none is held'),
    held: z.boolean().describe('The rule fired too often within an hour: this was reported once, then it was muted'),
    inhibited: z.boolean().describe('The radios are down, so nobody knows whether the condition still holds'),
    owner: z.object({ id: z.int(), username: z.string().nullable() }),
  })
  .meta({ id: 'Alert', description: 'One occurrence of what a rule watches for' })
type ShownAlert = z.infer<typeof alertSchema>

export const alertPageSchema = z.object({
  alerts: z.array(alertSchema),
  nextBefore: z.int().nullable().describe('`before` of the next page; null: this is the last one'),
  firing: z.int().describe('Number of your firing alerts that are not acknowledged'),
  full: z
    .boolean()
    .describe(`Whether ${MAX_OPEN} of your alerts are open, which is the most: until some are over, none is added`),
})

/** When the first held message about an alert is due; null: none is held. */
const heldUntil = sql<number | null>`(select min(d.held_until) from alert_delivery_items i
  join alert_deliveries d on d.id = i.delivery_id and d.state = 'waiting' and d.due_at = d.held_until
  where i.alert_id = ${alerts.id})`

const columns = { row: alerts, username: users.username, heldUntil }
type Found<Kind = AlertKind> = {
  readonly row: Omit<typeof alerts.$inferSelect, 'kind'> & { readonly kind: Kind }
  readonly username: string | null
  readonly heldUntil: number | null
}

type Page = {
  readonly limit: number
  readonly state?: AlertState | undefined
  readonly before?: number | undefined
  readonly node?: number | undefined
}

/** The viewer's alerts that they may see now, newest first; for an administrator those of all users. */
export async function listAlerts(ctx: SignedInCtx, isAll: boolean, { limit, state, before, node }: Page) {
  const { store, viewer } = ctx
  const words = await wordsFor(ctx)
  const owner = ownerOf(viewer)
  const kinds = ALERT_KINDS.filter((kind) => maySee(owner, kindOf(kind).requires))
  const isShown = and(
    viewer.view.direct.read ? undefined : eq(alerts.direct, false),
    onChannelSeenBy(alerts.channel, viewer.view),
    or(isNull(alerts.nodeNum), ofNodesSeenBy(viewer.view, alerts.nodeNum)),
  )
  const mine = isAll ? undefined : and(eq(alerts.ownerId, viewer.user.id), inArray(alerts.kind, kinds), isShown)
  const found = await store.db
    .select(columns)
    .from(alerts)
    .leftJoin(users, eq(users.id, alerts.ownerId))
    .where(
      and(
        mine,
        state === undefined ? undefined : eq(alerts.state, state),
        before === undefined ? undefined : lt(alerts.id, before),
        node === undefined ? undefined : eq(alerts.nodeNum, node),
      ),
    )
    .orderBy(desc(alerts.id))
    .limit(limit + 1)
  const page = found.slice(0, limit)
  const isSeen = ({ row }: Found) => maySee(owner, kindOf(row.kind).requires, row)
  const firing = await store.db
    .select({ n: sql<number>`count(*)` })
    .from(alerts)
    .where(
      and(
        eq(alerts.ownerId, viewer.user.id),
        eq(alerts.state, 'firing'),
        isNull(alerts.acknowledgedAt),
        inArray(alerts.kind, kinds),
        isShown,
      ),
    )
    .get()
  return {
    alerts: page
      .filter(isKnown)
      .filter(isSeen)
      .map((row) => show(row, words)),
    nextBefore: found.length > limit ? (page.at(-1)?.row.id ?? null) : null,
    firing: firing?.n ?? 0,
    full: (await countOpen(store, viewer.user.id)) >= MAX_OPEN,
  }
}

/** False: only another version has its kind. */
function isKnown(found: Found<string>): found is Found {
  return isAlertKind(found.row.kind)
}

function show({ row, username, heldUntil: until }: Found, words: Words): ShownAlert {
  const { id, ruleId, ruleName, kind, state, nodeNum, startedAt, firedAt, resolvedAt } = row
  const { acknowledgedAt, acknowledgedBy, notifiedAt, held, inhibited, ownerId } = row
  return {
    id,
    ruleId,
    ruleName,
    kind,
    state,
    what: tellAlert(words, row),
    fact: readFact(row.fact),
    nodeNum,
    nodeId: nodeNum === null ? null : formatNodeId(nodeNum),
    startedAt,
    firedAt,
    resolvedAt,
    acknowledgedAt,
    acknowledgedBy,
    notifiedAt,
    heldUntil: until,
    held,
    inhibited,
    owner: { id: ownerId, username },
  }
}

/**
 * Acknowledges one of the viewer's alerts: it is not repeated, but its end is still reported. For a doubtful key this
 * ends the alert. Repeating it changes nothing. Throws `alert_not_found`.
 */
export async function acknowledge(ctx: SignedInCtx, id: number): Promise<ShownAlert> {
  const { store, viewer } = ctx
  const read = () =>
    store.db.select(columns).from(alerts).leftJoin(users, eq(users.id, alerts.ownerId)).where(eq(alerts.id, id)).get()
  const before = await read()
  const owner = ownerOf(viewer)
  const isSeen = (found: Found) =>
    found.row.ownerId === viewer.user.id && maySee(owner, kindOf(found.row.kind).requires, found.row)
  if (before === undefined || !isKnown(before) || !isSeen(before)) throw new AppError('alert_not_found')
  const { ruleId, ruleName, kind } = before.row
  const now = ctx.now()
  const over = kindOf(kind).endsAcknowledged ? { state: 'resolved' as const, resolvedAt: now } : {}
  await store.atomic([
    store.db
      .update(alerts)
      .set({ acknowledgedAt: now, acknowledgedBy: viewer.user.username, ...over })
      .where(and(eq(alerts.id, id), isNull(alerts.acknowledgedAt), ne(alerts.state, 'resolved'))),
    audit(ctx, 'alert_acknowledged', { alertId: id, ruleId, name: ruleName, kind }, { onlyIfChanged: true }),
  ])
  tellOwner(ctx, viewer.user.id)
  const after = await read()
  return show(after !== undefined && isKnown(after) ? after : before, await wordsFor(ctx))
}

export const deliverySchema = z
  .object({
    id: z.int(),
    uid: z.string().describe('ID for the receiver, e.g. as webhook-id'),
    notification: z.enum(NOTIFICATION_KINDS),
    state: z.enum(ALERT_DELIVERY_STATES),
    ruleId: z.int().nullable(),
    destination: z.object({ id: z.int(), name: z.string(), kind: z.enum(DESTINATION_KIND_NAMES) }),
    createdAt: timeField,
    dueAt: timeField.describe('Time of the next attempt'),
    heldUntil: timeField.nullable().describe('The end of the quiet hours that hold or held it; null: none did'),
    attempts: z.int(),
    endedAt: timeField.nullable(),
    result: z.string().nullable().describe('Result of the last attempt, in a few words'),
  })
  .meta({ id: 'AlertDelivery', description: 'A message about alerts, and its delivery' })

export const deliveryPageSchema = z.object({ deliveries: z.array(deliverySchema), nextBefore: z.int().nullable() })

/** Messages of the viewer's alerts, newest first. */
export async function listDeliveries(
  ctx: SignedInCtx,
  {
    limit,
    state,
    before,
  }: { limit: number; state?: (typeof ALERT_DELIVERY_STATES)[number] | undefined; before?: number | undefined },
): Promise<z.infer<typeof deliveryPageSchema>> {
  const { store, viewer } = ctx
  const words = await wordsFor(ctx)
  const {
    id,
    uid,
    notification,
    state: stateColumn,
    ruleId,
    createdAt,
    dueAt,
    heldUntil: held,
    attempts,
    endedAt,
    result,
  } = alertDeliveries
  const destination = { id: alertDestinations.id, name: alertDestinations.name, kind: alertDestinations.kind }
  const found = await store.db
    .select({
      id,
      uid,
      notification,
      state: stateColumn,
      ruleId,
      destination,
      createdAt,
      dueAt,
      heldUntil: held,
      attempts,
      endedAt,
      result,
    })
    .from(alertDeliveries)
    .innerJoin(alertDestinations, eq(alertDestinations.id, alertDeliveries.destinationId))
    .where(
      and(
        eq(alertDeliveries.ownerId, viewer.user.id),
        state === undefined ? undefined : eq(stateColumn, state),
        before === undefined ? undefined : lt(id, before),
      ),
    )
    .orderBy(desc(id))
    .limit(limit + 1)
  return {
    deliveries: found.slice(0, limit).map((row) => {
      return { ...row, result: row.result === null ? null : words.translate(row.result) }
    }),
    nextBefore: found.length > limit ? (found[limit - 1]?.id ?? null) : null,
  }
}
