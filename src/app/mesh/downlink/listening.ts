import { sql } from 'drizzle-orm'
import { radioListeners } from '../../../db/schema.ts'
import { built, type Store } from '../../../db/store.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { type CommandKind, type DownlinkKind, KIND_OF_COMMAND, POLL_MS } from '../../../shared/mesh/downlink.ts'
import type { Ports } from '../../base/context.ts'
import { ownedBy } from '../../base/owned.ts'
import { nextTurn } from '../../base/pacing/next-turn.ts'
import { AppError } from '../../http/errors.ts'
import type { Events } from '../live/event.ts'
import { configuredRadios, readChannelTable } from '../radios/channel-table.ts'
import { listSenders } from '../radios/choose-radio.ts'
import { type Collector, isListeningAt, readKinds } from '../radios/listener.ts'
import { expireCommands, waitingCommands } from './commands.ts'
import type { Command } from './contents.ts'

type Listener = Collector & { readonly kinds: string; readonly listenedAt: number }

/** How often the database is asked where nothing tells that a command came: 50 queries for each request. */
const LOOK_MS = 500
/** And where live events tell it: another process may have written without a word. */
const LOOK_AGAIN_MS = 2000

/** Until a radio that has delivered nothing yet is known. */
const UNKNOWN_MS = 2000

/** Notes that a collector takes commands for these of its radios. Returns how many of them are known. */
async function noteListening(
  { store, now }: Pick<Ports, 'store' | 'now'>,
  tokenId: number,
  { radios, kinds }: Asked,
): Promise<number> {
  await store.atomic([
    built(
      store.db,
      sql`insert into radio_listeners (source_id, kinds, listened_at) select id, ${JSON.stringify(kinds)}, ${now()}
        from sources where token_id = ${tokenId} and kind = 'ingest' and local_node_num is not null
          and name in (select value from json_each(${JSON.stringify(radios)}))
        on conflict (source_id) do update set kinds = excluded.kinds, listened_at = excluded.listened_at`,
    ),
    // Its owner shows them no longer.
    ...(kinds.includes('settings')
      ? []
      : [
          built(
            store.db,
            sql`delete from device_config where source_id in (select id from sources where token_id = ${tokenId}
              and kind = 'ingest' and name in (select value from json_each(${JSON.stringify(radios)})))`,
          ),
        ]),
  ])
  const names = sql`select value from json_each(${JSON.stringify(radios)})`
  return store.db.$count(
    radioListeners,
    sql`source_id in (select id from sources where token_id = ${tokenId} and name in (${names}))`,
  )
}

/** The radios of collectors whose downlink was ever on, those that asked last first. */
export async function listListeners(store: Store): Promise<Listener[]> {
  return store.db.all<Listener>(
    sql`select s.id as sourceId, s.name as source, s.local_node_num as nodeNum, l.kinds, l.listened_at as listenedAt
      from radio_listeners l cross join sources s on s.id = l.source_id
      cross join api_tokens t on t.id = s.token_id and t.held_at is null
      where s.kind = 'ingest' and s.local_node_num is not null order by l.listened_at desc, s.id`,
  )
}

/** A channel's index in a radio, and its identity as its collector reported it last; null: unknown. */
export type InRadio = { readonly slot: number; readonly channel: string | null }

type Destination = { readonly radio?: string | undefined; readonly to: number; readonly channel: number }

/**
 * The collector's radio that sends a packet, and the channel in it; null: that is up to the radios of this service.
 * Throws `radio_unavailable` if a collector would have to and cannot, and `invalid_request` for a channel that
 * none of them has.
 */
export async function findCollector(
  { store, radio, now }: Pick<Ports, 'store' | 'radio'> & { now(): number },
  kind: CommandKind,
  { radio: named, to, channel }: Destination,
): Promise<(Collector & InRadio) | null> {
  const own = listSenders(radio)
  if (own.length > 0 && (named === undefined || own.some(({ source }) => source === named))) return null
  const known = (await listListeners(store)).filter(
    ({ source, nodeNum }) => nodeNum !== to && (named === undefined || source === named),
  )
  if (known.length === 0) return null
  const listening = known.filter(({ listenedAt }) => isListeningAt(listenedAt, now()))
  if (listening.length === 0) {
    throw new AppError('radio_unavailable', 'The collector of the radio is not listening for what to send')
  }
  const allowed = listening.filter(({ kinds }) => readKinds(kinds).includes(KIND_OF_COMMAND[kind]))
  if (allowed.length === 0) throw new AppError('radio_unavailable', 'The collector of the radio does not allow this')
  const table = await readChannelTable(store, configuredRadios(radio))
  const slotOf = ({ source }: Collector) =>
    table.indexIn(source, channel) ?? (to !== BROADCAST && channel === 0 ? 0 : null)
  const [best] = allowed.toSorted((a, b) => Number(table.has(b.source, channel)) - Number(table.has(a.source, channel)))
  const slot = best === undefined ? null : slotOf(best)
  if (best === undefined || slot === null) {
    const message = 'the sending radio has it disabled, or another channel in its place'
    throw new AppError('invalid_request', `channel: ${message}`, { issues: [{ path: 'channel', message }] })
  }
  const { sourceId, source, nodeNum } = best
  return { sourceId, source, nodeNum, slot, channel: table.identityIn(source, slot) }
}

/** What a collector asks: names of its radios, and what it takes. */
export type Asked = {
  readonly radios: readonly string[]
  readonly kinds: readonly DownlinkKind[]
  readonly waitMs: number
}

/** The latest request of each token; an earlier one that is still open ends. */
const latest = ownedBy((_db: Store['db']) => new Map<number, object>())

/** Waits for commands to the radios of a token; none: nobody gave one in time. */
export async function listen(
  ctx: Pick<Ports, 'store' | 'now' | 'events'>,
  tokenId: number,
  asked: Asked,
  signal: AbortSignal,
): Promise<Command[]> {
  const me = {}
  const current = latest(ctx.store.db).set(tokenId, me)
  const known = await noteListening(ctx, tokenId, asked)
  await expireCommands(ctx)
  const waitMs = Math.min(asked.waitMs, known < asked.radios.length ? UNKNOWN_MS : POLL_MS)
  const { events } = ctx
  // Where the streams are elsewhere, nothing is told here.
  const isTold = events !== null && events.elsewhere === undefined
  const pause = isTold ? byEvents(events, tokenId, waitMs) : byTime(waitMs)
  try {
    for (;;) {
      const since = ctx.events?.last() ?? 0
      const found = await waitingCommands(ctx, tokenId, asked.radios)
      if (found.length > 0 || pause.isOver() || signal.aborted || current.get(tokenId) !== me) return found
      await pause.wait(since)
    }
  } finally {
    pause.end()
    if (current.get(tokenId) === me) current.delete(tokenId)
  }
}

type Pause = {
  /** Until something may have changed since the event with this number. */
  wait(since: number): Promise<void>
  isOver(): boolean
  end(): void
}

function byTime(waitMs: number): Pause {
  let waited = 0
  return {
    async wait() {
      waited += LOOK_MS
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    },
    isOver: () => waited >= waitMs,
    end() {},
  }
}

function byEvents(events: Events, tokenId: number, waitMs: number): Pause {
  let isOver = false
  let ring = () => {}
  // It takes none of the streams of a user.
  const unsubscribe = events.subscribe(-tokenId, () => ring())
  const cancel = events.after(waitMs, () => {
    isOver = true
    ring()
  })
  return {
    async wait(since) {
      if (events.last() !== since) return nextTurn()
      let stop = () => {}
      await new Promise<void>((resolve) => {
        ring = resolve
        stop = events.after(LOOK_AGAIN_MS, resolve)
      })
      stop()
    },
    isOver: () => isOver || events.isClosed(),
    end() {
      cancel()
      unsubscribe?.()
    },
  }
}
