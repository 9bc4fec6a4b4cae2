import { sql } from 'drizzle-orm'
import type { textParts } from '../../db/schema.ts'
import { built, type Statement, type Store } from '../../db/store.ts'
import { nextTurn } from '../base/pacing/next-turn.ts'
import { command } from './merging.ts'
import { MARK, readIndexedFrom, readParts } from './text-index.ts'
import { rangeOf } from './walk.ts'

/** A part has at most about so many messages, and is dropped in ten milliseconds. */
export const PART = 500_000

const run = ({ db }: Store, text: string): Statement => built(db, sql.raw(text))

export const monthOf = (time: number) => new Date(time).getUTCFullYear() * 12 + new Date(time).getUTCMonth()

/** Creates a part, and lists it. With the settings of the migrations, because FTS5 itself would merge in long steps. */
export function createPart(
  store: Store,
  { last }: { readonly last: number },
  { before, month }: Pick<typeof textParts.$inferSelect, 'before' | 'month'>,
): { readonly name: string; readonly statements: readonly [Statement, ...Statement[]] } {
  const name = `messages_text_${last + 1}`
  const statements: readonly [Statement, ...Statement[]] = [
    run(
      store,
      `create virtual table if not exists ${name} using fts5(text, content='', columnsize=0, detail=none, tokenize='trigram')`,
    ),
    command(store, name, 'automerge', 0),
    command(store, name, 'crisismerge', 64),
    run(store, `insert or ignore into text_parts (name, before, month) values ('${name}', ${before}, ${month})`),
  ]
  return { name, statements }
}

/** Begins a part with each month. The trigger writes to it, because only so a new message can be found at once. */
export async function keepParts(store: Store, now: number): Promise<void> {
  // Deleted messages stay in a part until it is dropped. On D1, where there is one part, they are deleted there too.
  await store.atomic([run(store, 'drop trigger if exists messages_text_deleted')], 'lazily')
  const [newest, older] = await readParts(store)
  const { before: end } = await rangeOf(store, 'messages')
  const size = end - (older?.before ?? (await readIndexedFrom(store, 'messages')))
  const month = monthOf(now)
  if (newest === undefined || size <= 0 || (newest.month === month && size < PART)) return
  const { before } = newest
  const { name, statements } = createPart(store, newest, { before, month })
  await store.atomic([
    ...statements,
    run(store, 'drop trigger messages_text_inserted'),
    run(
      store,
      `create trigger messages_text_inserted after insert on messages
        when new.id >= (select indexed_from from text_indexes where table_name = 'messages')
        begin
          insert into ${name} (rowid, text) values (new.id,
            iif(instr(new.text, char(0)) > 0 or new.id % 16384 = 0, '${MARK}', '') || new.text);
        end`,
    ),
    // Nothing happens if another instance was faster.
    run(
      store,
      `update text_parts set before = (select coalesce(max(id), 0) + 1 from messages)
        where before = ${before} and name <> '${name}'`,
    ),
  ])
}

/**
 * Gives up the parts whose messages are all deleted. The next run drops them, when no search reads them any more.
 */
export async function dropParts(store: Store): Promise<void> {
  const { db } = store
  const unused = await db.all<{ name: string }>(sql`select name from sqlite_master where name glob 'messages_text*'
    and sql glob 'CREATE VIRTUAL*' and name not in (select name from text_parts)`)
  for (const { name } of unused) {
    await store.atomic([run(store, `drop table ${name}`)])
    await nextTurn()
  }
  const { from, before } = await rangeOf(store, 'messages')
  await store.atomic([
    run(store, `delete from text_parts where before <= ${from === before ? Number.MAX_SAFE_INTEGER - 1 : from}`),
  ])
}
