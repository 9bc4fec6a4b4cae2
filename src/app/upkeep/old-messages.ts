import { sql } from 'drizzle-orm'
import { messageHours, messages, revisions } from '../../db/schema.ts'
import { bind, prepareOnce, type Store } from '../../db/store.ts'

const value = sql.placeholder
const BROADCAST = sql.raw('4294967295')
const ofMessages = sql`name = 'messages'`
const highest = sql`max(0, coalesce((select max(id) from messages), 0))`
const hour = sql`cast(m.timestamp as integer) - m.timestamp % 3600000`
const ids = sql`json_each(${value('ids')})`

const queries = prepareOnce((db) => ({
  old: db
    .select({ id: messages.id })
    .from(messages)
    .where(sql`timestamp < ${value('cutoff')}`)
    .orderBy(messages.timestamp)
    .limit(value('rows'))
    .prepare(),
  // Triggers would do the same again for each message. The highest id is part of the revision, and may change.
  quieten: db
    .update(revisions)
    .set({ value: sql`value + 1 + ${highest}`, rowCount: 1 })
    .where(ofMessages)
    .prepare(),
  settle: db
    .update(revisions)
    .set({ value: sql`value - ${highest}`, rowCount: null })
    .where(ofMessages)
    .prepare(),
  hours: db
    .update(messageHours)
    .set({ counts: sql`left_over.counts` })
    .from(
      sql`(with gone as materialized (select ${hour} as t,
          iif(m.to_node_num = ${BROADCAST}, m.channel || '', 'direct') as place, count(*) as n
          from ${ids} i cross join messages m on m.id = i.value group by 1, 2)
        select h.t, json_group_object(e.key, e.value - coalesce(g.n, 0)) as counts
        from (select distinct t from gone) x cross join message_hours h on h.t = x.t cross join json_each(h.counts) e
          left join gone g on g.t = h.t and g.place = e.key group by h.t) left_over`,
    )
    .where(sql`message_hours.t = left_over.t`)
    .prepare(),
  emptyHours: db
    .delete(messageHours)
    .where(
      sql`t in (select ${hour} from ${ids} i cross join messages m on m.id = i.value)
        and not exists (select 1 from json_each(counts) where value > 0)`,
    )
    .prepare(),
  remove: db
    .delete(messages)
    .where(sql`id in (select value from ${ids})`)
    .prepare(),
}))

/**
 * Deletes the oldest messages from before `cutoff` (ms), `rows` of them at most, as one step; returns them. The counts of
 * hours and the revision are written once, and not for each message.
 */
export async function deleteOldMessages(
  store: Store,
  { cutoff, rows }: { readonly cutoff: number; readonly rows: number },
): Promise<readonly { readonly id: number }[]> {
  const { old, quieten, settle, hours, emptyHours, remove } = queries(store)
  const found = await old.all({ cutoff, rows })
  if (found.length === 0) return found
  const gone = { ids: JSON.stringify(found.map(({ id }) => id)) }
  const counts = [bind(hours, gone), bind(emptyHours, gone)]
  await store.atomic([bind(quieten, {}), ...counts, bind(remove, gone), bind(settle, {})], 'lazily')
  return found
}
