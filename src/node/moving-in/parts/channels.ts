import { eq, sql } from 'drizzle-orm'
import * as z from 'zod'
import { connectionLabel } from '../../../app/connections/label.ts'
import { seal } from '../../../app/base/sealing.ts'
import { readChannelTable } from '../../../app/mesh/radios/channel-table.ts'
import { insertSelect } from '../../../db/insert-select.ts'
import { channels, connections, settings, sources } from '../../../db/schema.ts'
import { parseChannelKey } from '../../../meshtastic/config/configured-keys.ts'
import { RADIO_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import { OWN_KINDS } from '../../../shared/mesh/link-kinds.ts'
import { MAX_CONNECTION_KEYS } from '../../../shared/limits.ts'
import type { Job } from '../job.ts'
import type { KnownNumbers, Places, Slot } from './places.ts'

/** Where the service notes which channel each number stands for; see `withdrawMoved`. */
const NOTED_KEY = 'channelNumbers'
const notedSchema = z.record(z.string(), z.string())
const KEYS_CONNECTION = 'MeshMonitor keys'
const UDP_PORT = 4403

/** The numbers of all channels that this service knows. */
export async function readKnownNumbers({ ctx: { store } }: Job): Promise<KnownNumbers> {
  const configured = await store.db
    .select({ name: connections.name, kind: connections.kind })
    .from(connections)
    .orderBy(connections.position, connections.id)
    .all()
  const radios = configured.flatMap(({ name, kind }) => (OWN_KINDS.some((own) => own === kind) ? [name] : []))
  const table = await readChannelTable(store, radios.length === 0 ? null : radios)
  const heard = await store.db
    .select({ number: channels.index, identity: channels.identity })
    .from(channels)
    .where(sql`channel_index >= ${RADIO_CHANNELS} and identity is not null`)
    .all()
  const noted = Object.entries(await readNoted(store)).map(([number, identity]) => [identity, Number(number)] as const)
  return new Map([
    ...heard.flatMap(({ number, identity }) => (identity === null ? [] : [[identity, number] as const])),
    ...noted,
    ...Array.from(table.identities(), ([number, identity]) => [identity, number] as const),
  ])
}

async function readNoted({ db }: Job['ctx']['store']): Promise<Readonly<Record<string, string>>> {
  const row = await db.select({ value: settings.value }).from(settings).where(eq(settings.key, NOTED_KEY)).get()
  return row === undefined ? {} : (notedSchema.safeParse(JSON.parse(row.value)).data ?? {})
}

/** Adds the sources that are missing. They have no radio until somebody connects one of that name. */
export async function writeOrigins({ ctx: { store }, writer, now }: Job, { origins }: Places): Promise<void> {
  await writer.atomic(
    origins.map(({ name, kind }) =>
      store.db.insert(sources).values({ kind, name, createdAt: now }).onConflictDoNothing(),
    ),
  )
}

/** Adds channels without keys, and notes what their numbers stand for, so that no number becomes another channel. */
export async function writeChannels(job: Job, slots: readonly Slot[]): Promise<void> {
  const { ctx, writer, tally } = job
  const { store } = ctx
  const [count] = await store.db
    .select({ n: sql<number>`count(*)` })
    .from(channels)
    .all()
  await writer.atomic(
    slots.map(({ origin, number, name, role, identity }) =>
      insertSelect(
        store.db,
        channels,
        {
          sourceId: sql`${sources.id}`,
          index: number,
          name,
          role,
          identity,
        },
        sql`from ${sources} where ${sources.name} = ${origin.name} and not exists (select 1 from channels c
          where c.source_id = ${sources.id} and (c.identity = ${identity} or c.channel_index = ${number}))`,
      ),
    ),
  )
  const [after] = await store.db
    .select({ n: sql<number>`count(*)` })
    .from(channels)
    .all()
  tally.added('channels', (after?.n ?? 0) - (count?.n ?? 0))
  const noted = await readNoted(store)
  const found = Object.fromEntries(
    slots.flatMap(({ number, identity }) => (number < RADIO_CHANNELS ? [[String(number), identity]] : [])),
  )
  const value = JSON.stringify({ ...noted, ...found, ...noted })
  if (value === JSON.stringify(noted)) return
  await writer.atomic([
    store.db
      .insert(settings)
      .values({ key: NOTED_KEY, value, updatedAt: job.now })
      .onConflictDoUpdate({ target: settings.key, set: { value, updatedAt: job.now } }),
  ])
}

/** Keeps the keys, sealed, in a connection that is switched off, or counts them as left out. */
export async function writeKeys(job: Job, slots: readonly Slot[], isWanted: boolean): Promise<void> {
  const { ctx, writer, tally, now } = job
  const all = slots.flatMap(({ name, identity, psk }) => {
    const text = psk === null ? null : `${name || identity.slice(identity.indexOf(':') + 1)}=${psk}`
    return text === null || parseChannelKey(text) === null ? [] : [text]
  })
  const keys = [...new Set(all)].slice(0, MAX_CONNECTION_KEYS)
  if (!isWanted) {
    for (const { name, identity, psk } of slots) {
      if (psk !== null) tally.lost('keys', name || identity.slice(identity.indexOf(':') + 1))
    }
    return
  }
  if (keys.length === 0) return
  const target = { port: UDP_PORT, interface: null, keys }
  const sealed = await seal(ctx.config.SESSION_SECRET, connectionLabel(KEYS_CONNECTION), JSON.stringify(target))
  const values = {
    name: KEYS_CONNECTION,
    kind: 'udp' as const,
    enabled: false,
    position: sql`(select coalesce(max(position), -1) + 1 from connections)`,
    sealed,
    revision: sql`(select coalesce(max(revision), 0) + 1 from connections)`,
    createdAt: now,
    updatedAt: now,
  }
  await writer.atomic([
    insertSelect(
      ctx.store.db,
      connections,
      values,
      sql`where not exists (select 1 from connections where name = ${KEYS_CONNECTION})`,
    ),
  ])
}
