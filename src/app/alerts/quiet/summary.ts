import { eq, sql } from 'drizzle-orm'
import { alertDeliveryItems, alertRules, alerts } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'
import { readFact, tellAlert } from '../facts.ts'
import { isAlertKind, kindOf } from '../kinds/kinds.ts'
import { type AlertNotification, listed, MAX_LISTED, tellPlain } from '../notification.ts'
import { type AlertOwner, maySee } from '../rights.ts'

const queries = prepareOnce((db) => ({
  // All of them, because the owner may see only the last ones. An owner has a few thousand alerts at most.
  items: db
    .select({
      id: alerts.id,
      kind: alerts.kind,
      nodeNum: alerts.nodeNum,
      channel: alerts.channel,
      direct: alerts.direct,
      startedAt: alerts.startedAt,
      firedAt: alerts.firedAt,
      resolvedAt: alerts.resolvedAt,
    })
    .from(alertDeliveryItems)
    .innerJoin(alerts, eq(alerts.id, alertDeliveryItems.alertId))
    .innerJoin(alertRules, eq(alertRules.id, alerts.ruleId))
    .where(sql`${alertDeliveryItems.deliveryId} = ${sql.placeholder('deliveryId')} and ${alertRules.enabled}`)
    .orderBy(sql`coalesce(${alerts.firedAt}, ${alerts.startedAt})`, alerts.id)
    .prepare(),
  facts: db
    .select({ id: alerts.id, what: alerts.what, fact: alerts.fact, held: alerts.held })
    .from(alerts)
    .where(sql`${alerts.id} in (select value from json_each(${sql.placeholder('ids')}))`)
    .prepare(),
}))

type About = Parameters<typeof tellPlain>[0] & {
  /** Of the owner's quiet hours; null: they have none any more. */
  readonly timeZone: string | null
}

/** The message about what quiet hours held, limited to what the owner may see now; null: nothing is left. */
export async function tellHeld(
  store: Store,
  { timeZone, ...about }: About,
  { deliveryId, owner }: { readonly deliveryId: number; readonly owner: AlertOwner },
): Promise<AlertNotification | null> {
  const { words } = about
  const clock = (t: number) => (timeZone === null ? words.time(t) : words.timeOfDay(t, timeZone))
  const seen = (await queries(store).items.all({ deliveryId })).filter(
    (item) => isAlertKind(item.kind) && maySee(owner, kindOf(item.kind).requires, item),
  )
  const listing = seen.slice(0, MAX_LISTED)
  const facts = await queries(store).facts.all({ ids: JSON.stringify(listing.map(({ id }) => id)) })
  const factOf = new Map(facts.map((each) => [each.id, each]))
  const told = listing.flatMap((item) => {
    const { kind, firedAt, startedAt, resolvedAt } = item
    const known = factOf.get(item.id)
    if (!isAlertKind(kind) || known === undefined) return []
    const time = clock(firedAt ?? startedAt)
    const what = tellAlert(words, known)
    const isOver = kindOf(kind).state !== undefined && resolvedAt !== null
    const line = isOver
      ? words.say('{time} {what} (over at {end})', { time, what, end: clock(resolvedAt) })
      : `${time} ${what}`
    return [{ line, alert: { ...item, what, fact: readFact(known.fact) } }]
  })
  if (told.length === 0) return null
  const heading = words.count(seen.length, '{n} alert:', '{n} alerts:')
  const text = [
    heading,
    ...listed(
      words,
      told.map(({ line }) => line),
      seen.length,
    ),
  ].join('\n')
  const message = tellPlain(about, words.say('In your quiet hours'), text)
  return { ...message, alerts: told.map(({ alert }) => alert), total: seen.length }
}
