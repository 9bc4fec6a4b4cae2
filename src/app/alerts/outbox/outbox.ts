import { ownedBy } from '../../base/owned.ts'
import { and, asc, eq, sql } from 'drizzle-orm'
import { insertSelect } from '../../../db/insert-select.ts'
import { alertDeliveries, alertDeliveryItems, alertDestinations, alertRules, alerts } from '../../../db/schema.ts'
import { bind, type Db, prepareOnce, type Store } from '../../../db/store.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'
import { findOwner } from '../../accounts/access/viewer.ts'
import type { Ports } from '../../base/context.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { confirmToken } from '../destinations/confirm-token.ts'
import { hostOf } from '../destinations/host.ts'
import { emailSettings } from '../destinations/kinds.ts'
import { type Attempt, attempt, type SendNeeds } from '../destinations/send.ts'
import { cleanText } from '../names.ts'
import { isAlertKind, kindOf } from '../kinds/kinds.ts'
import { maySee } from '../rights.ts'
import { tellAlerts, tellPlain, testMessage, type AlertNotification } from '../notification.ts'
import { pauseAfter } from '../../base/outgoing/pauses.ts'
import { said } from '../../words/words.ts'
import { readFact, tellAlert } from '../facts.ts'
import { readerOf } from '../../accounts/users/reader.ts'
import { wordsOf } from '../../words/reader.ts'
import { NEW_TO_DESTINATION } from '../new-delivery.ts'
import { holdMessages, readQuietHours } from '../quiet/hold.ts'
import { quietUntil } from '../quiet/hours.ts'
import { tellHeld } from '../quiet/summary.ts'

/** After this time a message is given up. */
export const GIVEN_UP_MS = DAY_MS
/** The maximum number of messages per hour to one destination. Further ones are counted in a summary. */
export const MAX_PER_HOUR = 30
/** Destinations served at the same time. */
const AT_ONCE = 8
/** Rules whose firing alerts are counted in one turn of the event loop; one may have 5000. */
const RULES_COUNTED = 1
/** An interrupted attempt is repeated after this time. */
const CLAIM_MS = MINUTE_MS

/** Why a message was not sent. Stored, and translated for whoever reads it. */
const LATE = said('not sent within a day')
const UNSEEN = said('its owner may no longer see it or was told already, or the rule was deleted')
const NO_OWNER = said('its owner cannot sign in')
const HELD = said('the destination is held until its owner has looked at it')
const OFF = said('the destination is off')

const value = sql.placeholder
/** Rows per statement: a few milliseconds. */
const AT_A_TIME = sql.raw('1000')
const isOfAlerts = sql.raw(`notification in ('fired', 'resolved', 'repeated')`)
/**
 * From when on the time counts after which a message is given up: the end of the quiet hours that held it, but not those
 * of each night for a receiver that is down.
 */
const waitsSince = sql.raw(
  `coalesce(min(coalesce(held_until, created_at), tried_at + ${DAY_MS}), held_until, created_at)`,
)

const queries = prepareOnce((db) => ({
  // The destination that has waited longest comes first.
  due: db
    .select({ destinationId: alertDestinations.id })
    .from(alertDestinations)
    .where(
      sql`coalesce(retry_at, 0) <= ${value('now')} and exists (select 1 from alert_deliveries d
        where d.destination_id = alert_destinations.id and d.state = 'waiting' and d.due_at <= ${value('now')})`,
    )
    .orderBy(sql`coalesce(last_at, 0)`)
    .limit(AT_ONCE)
    .prepare(),
  nextDue: db
    .select({ at: sql<number | null>`min(max(d.due_at, coalesce(retry_at, 0)))` })
    .from(sql`alert_deliveries d join alert_destinations on alert_destinations.id = d.destination_id`)
    .where(
      sql`d.state = 'waiting' and d.due_at <= ${value('until')}
        and max(d.due_at, coalesce(retry_at, 0)) > ${value('after')}
        and max(d.due_at, coalesce(retry_at, 0)) <= ${value('until')}`,
    )
    .prepare(),
  destination: db
    .select()
    .from(alertDestinations)
    .where(eq(alertDestinations.id, value('id')))
    .prepare(),
  next: db
    .select()
    .from(alertDeliveries)
    .where(sql`destination_id = ${value('id')} and state = 'waiting' and due_at <= ${value('now')}`)
    .orderBy(asc(alertDeliveries.dueAt), asc(alertDeliveries.id))
    .limit(1)
    .prepare(),
  sent: db
    .select({ n: sql<number>`count(*)`, first: sql<number | null>`min(tried_at)` })
    .from(alertDeliveries)
    .where(
      sql`destination_id = ${value('id')} and tried_at > ${value('since')} and tried_at <= ${value('now')} and ${isOfAlerts}`,
    )
    .prepare(),
  merge: db
    .update(alertDeliveries)
    .set({ state: 'merged', endedAt: sql`${value('now')}`, result: 'too many within an hour: counted in a summary' })
    .where(
      sql`id in (select id from alert_deliveries where destination_id = ${value('id')} and state = 'waiting'
        and attempts = 0 and due_at <= ${value('now')} and ${isOfAlerts} limit ${AT_A_TIME})`,
    )
    .prepare(),
  summarise: insertSelect(
    db,
    alertDeliveries,
    {
      ...NEW_TO_DESTINATION,
      notification: 'summary',
      createdAt: value('now'),
      dueAt: value('due'),
    },
    sql`from alert_destinations d where d.id = ${value('id')} and not exists (select 1 from alert_deliveries
      where destination_id = d.id and notification = 'summary' and state = 'waiting')`,
  ).prepare(),
  merged: db
    .select({ n: sql<number>`count(*)` })
    .from(alertDeliveries)
    .where(sql`destination_id = ${value('id')} and state = 'merged' and ended_at >= ${value('since')}`)
    .prepare(),
  claim: db
    .update(alertDeliveries)
    .set({
      attempts: sql`attempts + 1`,
      triedAt: sql`coalesce(tried_at, ${value('now')})`,
      dueAt: sql`${value('until')}`,
    })
    .where(sql`id = ${value('deliveryId')} and state = 'waiting' and due_at <= ${value('now')}`)
    .returning({ id: alertDeliveries.id })
    .prepare(),
  end: db
    .update(alertDeliveries)
    .set({ state: sql`${value('state')}`, endedAt: sql`${value('now')}`, result: sql`${value('result')}` })
    .where(sql`id = ${value('deliveryId')} and state = 'waiting'`)
    .prepare(),
  endAll: db
    .update(alertDeliveries)
    .set({ state: sql`${value('state')}`, endedAt: sql`${value('now')}`, result: sql`${value('result')}` })
    .where(
      sql`id in (select id from alert_deliveries where destination_id = ${value('id')} and state = 'waiting' limit ${AT_A_TIME})`,
    )
    .prepare(),
  fail: db
    .update(alertDeliveries)
    .set({ dueAt: sql`${value('until')}`, result: sql`${value('result')}` })
    .where(sql`id = ${value('deliveryId')}`)
    .prepare(),
  expire: db
    .update(alertDeliveries)
    .set({ state: 'failed', endedAt: sql`${value('now')}`, result: sql`coalesce(result, ${LATE.text})` })
    .where(
      sql`id in (select id from alert_deliveries where state = 'waiting'
        and ${waitsSince} < ${value('before')} limit ${AT_A_TIME})`,
    )
    .prepare(),
  // Releases messages recorded by a clock that was ahead, which would wait until then.
  distrust: db
    .update(alertDeliveries)
    .set({
      dueAt: sql`${value('now')}`,
      createdAt: sql`min(created_at, ${value('now')})`,
      heldUntil: sql`min(held_until, ${value('now')})`,
    })
    .where(
      sql`id in (select id from alert_deliveries where state = 'waiting' and due_at > ${value('far')}
        and (held_until is null or due_at > ${value('tomorrow')}) limit ${AT_A_TIME})`,
    )
    .prepare(),
  trustAgain: db
    .update(alertDestinations)
    .set({ retryAt: null })
    .where(sql`retry_at > ${value('far')}`)
    .prepare(),
  note: db
    .update(alertDestinations)
    .set({
      failures: sql`iif(${value('ok')}, 0, failures + 1)`,
      retryAt: sql`${value('retryAt')}`,
      lastResult: sql`${value('result')}`,
      lastAt: sql`${value('now')}`,
      enabled: sql`enabled and not ${value('gone')}`,
    })
    .where(sql`id = ${value('id')}`)
    .prepare(),
  remove: db
    .delete(alertDestinations)
    .where(eq(alertDestinations.id, value('id')))
    .prepare(),
  news: db
    .select({
      name: alertDestinations.name,
      kind: alertDestinations.kind,
      settings: alertDestinations.settings,
      newsAt: alertDestinations.newsAt,
    })
    .from(alertDestinations)
    .where(sql`owner_id = ${value('ownerId')} and id <> ${value('id')} and news_at is not null`)
    .orderBy(asc(alertDestinations.id))
    .prepare(),
  rule: db
    .select({ id: alertRules.id, name: alertRules.name, kind: alertRules.kind })
    .from(alertRules)
    .where(and(eq(alertRules.id, value('id')), eq(alertRules.enabled, true)))
    .prepare(),
  lettered: db
    .select({ entry: sql<number>`j.value` })
    .from(sql`account_letters l, json_each(l.details, '$.entries') j`)
    .where(sql`l.user_id = ${value('ownerId')} and lower(l.email) = lower(${value('address')})`)
    .prepare(),
  items: db
    .select({
      id: alerts.id,
      key: alerts.key,
      kind: alerts.kind,
      what: alerts.what,
      fact: alerts.fact,
      held: alerts.held,
      nodeNum: alerts.nodeNum,
      channel: alerts.channel,
      direct: alerts.direct,
      startedAt: alerts.startedAt,
      firedAt: alerts.firedAt,
      resolvedAt: alerts.resolvedAt,
    })
    .from(alertDeliveryItems)
    .innerJoin(alerts, eq(alerts.id, alertDeliveryItems.alertId))
    .where(eq(alertDeliveryItems.deliveryId, value('deliveryId')))
    .orderBy(asc(alerts.id))
    .limit(1000)
    .prepare(),
}))

export type OutboxNeeds = SendNeeds & Pick<Ports, 'log' | 'providers' | 'meter' | 'clockWatch' | 'translations'>

type Destination = typeof alertDestinations.$inferSelect
type Delivery = typeof alertDeliveries.$inferSelect

/**
 * Gives up messages that waited too long, and releases messages recorded by a clock that was ahead. Runs each minute.
 */
export async function tidyOutbox({
  store,
  now,
  clockWatch,
}: Pick<Ports, 'store' | 'now' | 'clockWatch'>): Promise<void> {
  if (clockWatch !== null && clockWatch.state().state !== 'confirmed') return
  const { expire, distrust, trustAgain } = queries(store)
  await store.atomic([
    bind(distrust, { now: now(), far: now() + 2 * HOUR_MS, tomorrow: now() + DAY_MS + 2 * HOUR_MS }),
    bind(trustAgain, { far: now() + 2 * HOUR_MS }),
    bind(expire, { now: now(), before: now() - GIVEN_UP_MS }),
  ])
}

/** Destinations whose messages could not be sent because of a fault of this service. It is logged once. */
const faulty = ownedBy((_db: Db) => new Set<number>())

/**
 * Sends due messages, one at a time to each destination. Returns the number of destinations, so that the caller
 * continues. `mayWrite` is checked before each message, because another process may have taken over.
 */
export async function deliverDue(needs: OutboxNeeds, mayWrite: () => boolean = () => true): Promise<number> {
  const { store, now, clockWatch, log } = needs
  if (clockWatch !== null && clockWatch.state().state !== 'confirmed') return 0
  const due = await queries(store).due.all({ now: now() })
  const known = faulty(store.db)
  const done = await Promise.all(
    due.map(async ({ destinationId }) => {
      try {
        if (!mayWrite()) return false
        await deliverNext(needs, destinationId)
        known.delete(destinationId)
        return true
      } catch (error) {
        if (!known.has(destinationId))
          log.error('An alert message could not be sent', { destination: destinationId, error })
        known.add(destinationId)
        return false
      }
    }),
  )
  return done.filter(Boolean).length
}

/** When the next message after a moment is due, up to another one; null: none is. */
export async function nextDue(store: Store, between: { readonly after: number; readonly until: number }) {
  return (await queries(store).nextDue.get(between))?.at ?? null
}

async function deliverNext(needs: OutboxNeeds, destinationId: number): Promise<void> {
  const { store, now } = needs
  const at = now()
  const prepared = queries(store)
  const destination = await prepared.destination.get({ id: destinationId })
  const next = () => prepared.next.get({ id: destinationId, now: at })
  let delivery = await next()
  if (destination === undefined || delivery === undefined) return
  const owner = await findOwner(needs, destination.ownerId)
  const refusal = owner === null ? NO_OWNER.text : refusalOf(destination, delivery)
  if (owner === null || refusal !== null) {
    const result = refusal
    return store.atomic([bind(prepared.endAll, { id: destinationId, state: 'dropped', now: at, result })])
  }
  const hours = await readQuietHours(store, destination.ownerId)
  const until = hours === null ? null : quietUntil(hours, at)
  if (until !== null) {
    // The next step holds the rest. Until then nothing is sent, because the next message may be one of them.
    if (!(await holdMessages(store, { id: destinationId, now: at, until }))) return
    delivery = await next()
    if (delivery === undefined) return
  }
  const { id: deliveryId } = delivery
  if (delivery.attempts === 0 && ['fired', 'resolved', 'repeated'].includes(delivery.notification)) {
    const { n, first } = (await prepared.sent.get({ id: destinationId, since: at - HOUR_MS, now: at })) ?? {
      n: 0,
      first: null,
    }
    if (n >= MAX_PER_HOUR) {
      return store.atomic([
        bind(prepared.merge, { id: destinationId, now: at }),
        bind(prepared.summarise, { id: destinationId, now: at, due: (first ?? at) + HOUR_MS }),
      ])
    }
  }
  // From here on no other process sends it, and no alert joins it: its alerts are read after this.
  const claimed = await prepared.claim.all({ deliveryId, now: at, until: at + CLAIM_MS })
  if (claimed.length === 0) return
  const message = await compose(needs, delivery, { destination, owner, timeZone: hours?.timeZone ?? null })
  if (message === null)
    return store.atomic([bind(prepared.end, { deliveryId, state: 'dropped', now: at, result: UNSEEN.text })])
  const target = { kind: destination.kind, settings: destination.settings, mayBePrivate: owner.isAdmin }
  await note(needs, { destination, delivery }, await attempt(needs, target, message))
}

/** Why nothing is sent to a destination; null: messages are sent. */
function refusalOf({ enabled, heldAt }: Destination, { notification }: Delivery): string | null {
  if (heldAt !== null) return HELD.text
  return enabled || notification === 'confirm' ? null : OFF.text
}

async function note(
  { store, now, meter }: OutboxNeeds,
  { destination, delivery }: { destination: Destination; delivery: Delivery },
  made: Attempt,
): Promise<void> {
  const { id, kind, failures } = destination
  const { id: deliveryId, createdAt, heldUntil, triedAt } = delivery
  const at = now()
  const prepared = queries(store)
  const { result } = made
  const isGone = !made.ok && made.isGone
  const pauseMs = made.ok ? 0 : Math.max(pauseAfter(failures), Math.min(made.retryAfterMs ?? 0, HOUR_MS))
  const until = at + pauseMs
  const noted = bind(prepared.note, {
    id,
    ok: Number(made.ok),
    retryAt: made.ok ? null : until,
    result,
    now: at,
    gone: Number(isGone),
  })
  meter?.countAlertDelivery(kind, made.ok ? 'delivered' : 'failed')
  if (made.ok) return store.atomic([noted, bind(prepared.end, { deliveryId, state: 'delivered', now: at, result })])
  if (isGone) {
    const end = bind(prepared.endAll, { id, state: 'failed', now: at, result })
    return store.atomic(kind === 'web_push' ? [bind(prepared.remove, { id })] : [noted, end])
  }
  if (until - Math.min(heldUntil ?? createdAt, (triedAt ?? at) + DAY_MS) > GIVEN_UP_MS) {
    return store.atomic([noted, bind(prepared.end, { deliveryId, state: 'failed', now: at, result })])
  }
  return store.atomic([noted, bind(prepared.fail, { deliveryId, until, result })])
}

type Whose = {
  readonly destination: Destination
  readonly owner: NonNullable<Awaited<ReturnType<typeof findOwner>>>
  /** Of the owner's quiet hours; null: none. */
  readonly timeZone: string | null
}

/** The message, limited to alerts that the owner may see now; null: none are left. */
async function compose(
  needs: OutboxNeeds,
  { id: deliveryId, uid, notification, ruleId, createdAt }: Delivery,
  { destination, owner, timeZone }: Whose,
): Promise<AlertNotification | null> {
  const { store, now, config } = needs
  const words = await wordsOf(needs, await readerOf(store, destination.ownerId))
  const about = { uid, notification, at: now(), publicUrl: config.PUBLIC_URL, words }
  if (notification === 'test') return testMessage(about)
  if (notification === 'confirm') {
    const path = `/alerts?confirm=${destination.id}.${await confirmToken(config, destination)}`
    const text = words.say(
      'Sign in and follow this link to receive alerts of your mesh at this address. If you did not request this, ignore this message.',
    )
    return tellPlain(about, words.say('Confirm this address'), text, path)
  }
  if (notification === 'destination') return tellNews(store, about, destination)
  if (notification === 'summary') {
    const { n } = (await queries(store).merged.get({ id: destination.id, since: createdAt })) ?? { n: 0 }
    return tellPlain(
      about,
      words.say('More alerts'),
      words.count(
        n,
        '{n} more message was not sent by itself, because there were too many within an hour.',
        '{n} more messages were not sent one by one, because there were too many within an hour.',
      ),
    )
  }
  if (notification === 'quiet') return tellHeld(store, { ...about, timeZone }, { deliveryId, owner })
  const rule = ruleId === null ? undefined : await queries(store).rule.get({ id: ruleId })
  if (rule === undefined) return null
  const { kind } = rule
  if (!isAlertKind(kind)) return null
  const items = (await queries(store).items.all({ deliveryId })).filter(
    (item) => isAlertKind(item.kind) && maySee(owner, kindOf(item.kind).requires, item),
  )
  const told = ({ what, fact, held, ...item }: (typeof items)[number]) => {
    return { ...item, what: tellAlert(words, { what, fact, held }), fact: readFact(fact) }
  }
  const news = kind === 'sign_in' ? await withoutLettered(store, destination, items) : items
  return news.length === 0 ? null : tellAlerts(about, { ...rule, kind }, news.map(told), news.length)
}

/** Leaves out events that an e-mail about the account already reported to the same address. */
async function withoutLettered<Item extends { readonly key: string }>(
  store: Store,
  { kind, settings, ownerId }: Destination,
  items: readonly Item[],
): Promise<readonly Item[]> {
  if (kind !== 'email') return items
  const { address } = emailSettings.parse(JSON.parse(settings))
  const lettered = new Set(
    (await queries(store).lettered.all({ ownerId, address })).map(({ entry }) => `audit:${entry}`),
  )
  return items.filter(({ key }) => !lettered.has(key))
}

/** The message about new destinations of the same owner; null: they are gone, or the owner knows about them. */
async function tellNews(
  store: Store,
  about: Parameters<typeof tellPlain>[0],
  { id, ownerId }: Destination,
): Promise<AlertNotification | null> {
  const found = await queries(store).news.all({ id, ownerId })
  if (found.length === 0) return null
  const lines = found.map(({ name, kind, settings, newsAt }) => {
    const host = hostOf(kind, JSON.parse(settings))
    const at = newsAt === null ? '' : ` (${about.words.time(newsAt)})`
    return `• ${cleanText(name, 80)}: ${kind}${host === null ? '' : `, ${host}`}${at}`
  })
  const text = [
    about.words.say('These destinations of your alerts are new or have a new address:'),
    ...lines,
    about.words.say('If that was not you, delete them, end your other sessions and change your password.'),
  ].join('\n')
  return tellPlain(about, about.words.say('A new destination of your alerts'), text)
}

/** The number of firing alerts, for monitoring. */
export async function countFiring({ db, batch }: Store): Promise<number> {
  // Where each query is a round trip, one counts all.
  const limit = batch === undefined ? RULES_COUNTED : -1
  let firing = 0
  for (let after = 0; ;) {
    // The index has only what is open: alerts that are over are a hundred times as many.
    const found = await db.all<{ ruleId: number; n: number }>(sql`select rule_id as ruleId,
      count(*) filter (where state = 'firing') as n from alerts indexed by alerts_open
      where state <> 'resolved' and rule_id > ${after} group by rule_id order by rule_id limit ${limit}`)
    firing += found.reduce((sum, { n }) => sum + n, 0)
    const last = found.at(-1)
    if (last === undefined || found.length !== limit) return firing
    after = last.ruleId
    await nextTurn()
  }
}
