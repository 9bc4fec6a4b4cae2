import type { RadioEvent } from '../../../meshtastic/radio-event.ts'
import type { Heard, News } from '../heard/heard.ts'
import type { NodeRow } from './rows/node-row.ts'
import type { BatchCounts } from '../../system/metrics/meter.ts'
import type { Packet } from '../../../meshtastic/packet.ts'
import { and, desc, eq, gte, sql } from 'drizzle-orm'
import { messages } from '../../../db/schema.ts'
import { prepareOnce, type Statement, type Store } from '../../../db/store.ts'
import { RADIO_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import { withdrawMoved } from '../../accounts/access/moved-channels.ts'
import { readChannelTable } from '../radios/channel-table.ts'
import { listMetricNames, writePositions, writeTelemetry } from './rows/history.ts'
import { writeHearings } from './rows/hearings.ts'
import { fileMessages, refileMessages, writeMessages } from './rows/messages.ts'
import { isSuspected, type Judgement, judgeBatch } from './trust/judge.ts'
import type { OnBatch } from './on-batch.ts'
import { type Admission, admitNewcomers, type NewNodeExcess } from './trust/newcomers.ts'
import { listDeleted } from '../nodes/deletion/deleted.ts'
import { writeRefused } from '../nodes/identity/refused-identities.ts'
import { liftSuspicions, writeSuspicions } from '../nodes/identity/suspicions.ts'
import { writeNodes } from './rows/nodes.ts'
import { type Plan, planBatch } from './plan.ts'
import {
  disputeClaims,
  type KnownSource,
  listLocalSources,
  markLocalNodes,
  retireRadios,
  writeChannels,
  writeSources,
} from '../radios/source-table.ts'
import { writeTraffic } from './rows/traffic.ts'
import type { CollectorFilter } from '../collector/filter.ts'
import { listDeliverable, writeOutbox } from './outbox.ts'
import {
  createPacketWindow,
  type PacketWindow,
  type Sightings,
  WINDOW_MS,
  WINDOW_SIZE,
} from './duplicates/packet-window.ts'
import { readContent } from './refused-content.ts'
import { recallProven } from './duplicates/proven-packets.ts'
import { readRecentPackets, readSeenPackets } from './duplicates/seen-packets.ts'

/** Turns events of radios into rows. Calls run one after the other: there is a single writer. */
export type Ingest = {
  /**
   * Stores a batch as one atomic step. If it throws, nothing of the batch is remembered, and the same batch can be passed
   * again. Nothing of it is stored either, unless the disk refused to flush it (`NOT_FLUSHED`).
   */
  store(batch: readonly Heard[]): Promise<StoredBatch>
}

export type StoredBatch = {
  /** What was new in it. */
  readonly news: readonly News[]
  /** Events that seem to come from somebody else. Nothing acts upon their content. */
  readonly suspected: ReadonlySet<RadioEvent>
}

/** What a writer needs from the collector that delivers the stored packets. */
export type Collecting = {
  readonly filter: CollectorFilter
  /** `rows` wait for their delivery; the filter left out `filtered` others. */
  onStored(rows: number, filtered: number): void
}

/** State that is remembered between batches. */
type Memory = {
  readonly window: PacketWindow
  localNodes: ReadonlyMap<string, number>
  readonly sources: Set<string>
  readonly metrics: Set<string>
}

/** The outcome of a batch, where several writers exist. */
export type Stored = {
  readonly news: readonly News[]
  readonly excesses: readonly NewNodeExcess[]
  /** The owners of the alerts that it caused. */
  readonly alerted: readonly number[]
  /** Packets that were already known. */
  readonly duplicates: number
  readonly counts: BatchCounts
}

const queries = prepareOnce((db) => ({
  recentMessages: db
    .select({
      from: messages.fromNodeNum,
      id: messages.packetId,
      at: messages.timestamp,
      hopsAway: messages.hopsAway,
      isHeard: messages.heard,
      isProven: sql<number>`${messages.signed} or (${messages.pkiEncrypted} and ${messages.keyDoubt} is null)`,
    })
    .from(messages)
    .where(and(gte(messages.timestamp, sql.placeholder('since')), eq(messages.direction, 'in')))
    .orderBy(desc(messages.id))
    .limit(WINDOW_SIZE)
    .prepare(),
}))

/** What a process does with its batches besides storing them. */
export type IngestOptions = {
  /** Packets that pass its filter are queued for it in the same step. It receives the number of rows. */
  readonly collector?: Collecting | null
  /** Names of the configured radios, in their order. Radios that are no longer configured are ordinary nodes. */
  readonly radios?: readonly string[] | null
  /** Adds statements to the atomic step of each batch. */
  readonly onBatch?: OnBatch | null
  /** Receives sources that bring too many new nodes. */
  readonly onExcess?: (excess: NewNodeExcess) => void
  /** Receives the counts of each stored batch. */
  readonly onCounted?: (counts: BatchCounts) => void
  /** Receives the owners of alerts that a batch caused. */
  readonly onAlerts?: (owners: readonly number[]) => void
}

/** The only writer of a process. */
export function createIngest(
  store: Store,
  { collector = null, radios = null, onBatch = null, onExcess, onCounted, onAlerts }: IngestOptions = {},
): Ingest {
  let memory: Memory | null = null
  return {
    async store(batch) {
      const [first] = batch
      if (first === undefined) return { news: [], suspected: new Set() }
      memory ??= await recall(store, first.event.receivedAt, radios)
      const sightings = memory.window.open()
      const { localNodes, sources } = memory
      const table = await readChannelTable(store, radios)
      const now = batch.reduce((latest, { event }) => Math.max(latest, event.receivedAt), 0)
      const judgements = await judgeBatch(store, batch, { sightings, now, radios })
      await recallForgotten(store, batch, judgements, sightings, radios)
      await markRepeated(store, batch, judgements, sightings)
      const plan = readContent(() => planBatch(batch, judgements, { localNodes, sources, table }, sightings))
      const selection = collector?.filter(batch, new Set(plan.localNodes.values())) ?? null
      const kept = listDeliverable(selection?.passed ?? [])
      const present = await leaveOutDeleted(store, plan)
      const admission = await admitNewcomers(store, present, batch, first.event.receivedAt)
      const part = await onBatch?.(store, { plan, newNodes: admission.newNodes, now })
      const [statement, ...others] = [
        ...(await withdrawnBy(store, plan, now)),
        ...statementsOf(store, { plan, memory, now }, admission),
        ...writeOutbox(store, kept),
        ...(part?.statements ?? []),
      ]
      await (statement === undefined ? store.settled?.() : store.atomic([statement, ...others]))
      sightings.commit()
      for (const excess of admission.excesses) onExcess?.(excess)
      const owners = (await part?.stored()) ?? []
      if (owners.length > 0) onAlerts?.(owners)
      if (selection !== null) {
        selection.commit()
        collector?.onStored(kept.length, selection.filtered)
      }
      memory.localNodes = plan.localNodes
      onCounted?.(countBatch(batch, judgements))
      for (const name of plan.sources.keys()) memory.sources.add(name)
      for (const name of listMetricNames(plan.telemetry)) memory.metrics.add(name)
      return { news: [...plan.news, ...plan.doubted], suspected: listSuspected(batch, judgements) }
    },
  }
}

function listSuspected(batch: readonly Heard[], judgements: readonly (Judgement | null)[]): ReadonlySet<RadioEvent> {
  const isSeen = (judgement: Judgement | null | undefined) => judgement != null && isSuspected(judgement)
  return new Set(batch.flatMap(({ event }, index) => (isSeen(judgements[index]) ? [event] : [])))
}

/**
 * Stores a batch of one source as one atomic step, beside other writers: known packets are looked up in the database.
 * Storing the same batch again changes nothing, even at the same time. `known`: null for a new source; `radios` as
 * above; `now` in milliseconds.
 */
export async function storeBatch(
  store: Store,
  batch: readonly Heard[],
  {
    known,
    radios,
    now,
    onBatch = null,
  }: {
    readonly known: KnownSource | null
    readonly radios: readonly string[] | null
    readonly now: number
    readonly onBatch?: OnBatch | null
  },
): Promise<Stored> {
  const window = createPacketWindow()
  const seen = window.open()
  for (const packet of await readSeenPackets(store, batch, radios)) seen.see(packet)
  seen.commit()
  const isPlaced = known !== null && known.localNodeNum !== null
  const memory: Memory = {
    window,
    localNodes: new Map(isPlaced ? [[known.name, known.localNodeNum]] : []),
    sources: new Set(known === null ? [] : [known.name]),
    metrics: new Set(),
  }
  const table = await readChannelTable(store, radios)
  const sightings = window.open()
  const judgements = await judgeBatch(store, batch, { sightings, now, radios })
  await markRepeated(store, batch, judgements, sightings)
  const plan = readContent(() => planBatch(batch, judgements, { ...memory, table }, sightings))
  const admission = await admitNewcomers(store, await leaveOutDeleted(store, plan), batch, now)
  const part = await onBatch?.(store, { plan, newNodes: admission.newNodes, now })
  const [statement, ...others] = [
    ...(await withdrawnBy(store, plan, now)),
    ...statementsOf(store, { plan, memory, now }, admission),
    ...(part?.statements ?? []),
  ]
  await (statement === undefined ? store.settled?.() : store.atomic([statement, ...others]))
  const { news, doubted, duplicates } = plan
  return {
    news: [...news, ...doubted],
    excesses: admission.excesses,
    alerted: (await part?.stored()) ?? [],
    duplicates: duplicates.length,
    counts: countBatch(batch, judgements),
  }
}

/** Only what a radio reports about its channels moves numbers. */
async function withdrawnBy(store: Store, { channels, table }: Plan, now: number): Promise<Statement[]> {
  return channels.some(({ index }) => index < RADIO_CHANNELS) ? withdrawMoved(store, table.identities(), now) : []
}

function countBatch(batch: readonly Heard[], judgements: readonly Judgement[]): BatchCounts {
  return {
    signatures: countEach(
      batch.flatMap(({ event }, index) =>
        event.type === 'packet' ? [judgements[index]?.signature ?? ('none' as const)] : [],
      ),
    ),
    refusedValues: countEach(batch.flatMap(({ event }) => event.refused ?? [])),
  }
}

function countEach<T>(values: readonly T[]): Map<T, number> {
  const counts = new Map<T, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

/**
 * A signature never expires, and a key opens a direct message again and again, so both are recognised for as long as the
 * packet log keeps them.
 */
async function markRepeated(
  store: Store,
  batch: readonly Heard[],
  judgements: readonly Judgement[],
  sightings: Sightings,
): Promise<void> {
  const signed = batch.flatMap(({ event }, index) =>
    event.type === 'packet' && isProven(event.packet, judgements[index])
      ? [{ from: event.packet.from, id: event.packet.id, at: event.receivedAt }]
      : [],
  )
  const { repeated, recent } = await recallProven(store, signed)
  for (const packet of repeated) sightings.mark(packet)
  // What the window or the log still have tells more.
  for (const packet of recent) if (!sightings.knows(packet.from, packet.id)) sightings.see(packet)
}

/**
 * A flood of other packets pushes a signed one out of the window long before its time. Otherwise it would be new when it
 * is sent again.
 */
async function recallForgotten(
  store: Store,
  batch: readonly Heard[],
  judgements: readonly Judgement[],
  sightings: Sightings,
  radios: readonly string[] | null,
): Promise<void> {
  const forgotten = batch.filter(
    ({ event }, index) =>
      event.type === 'packet' &&
      isProven(event.packet, judgements[index]) &&
      !sightings.knows(event.packet.from, event.packet.id),
  )
  for (const packet of await readSeenPackets(store, forgotten, radios)) sightings.see(packet)
}

function isProven({ pkiEncrypted, port }: Packet, judgement: Judgement | undefined): boolean {
  const isSealed = pkiEncrypted && port !== null && judgement?.keyDoubt === null
  return judgement?.trust === 'signed' || isSealed
}

/** A radio's memory does not recreate a node that was deleted after it was heard. Our own radios always exist. */
async function leaveOutDeleted(store: Store, plan: Plan): Promise<Plan> {
  const own = new Set(plan.localNodes.values())
  const fromMemory = [...plan.late, ...plan.remembered].filter(({ nodeNum }) => !own.has(nodeNum))
  const deleted = new Set(await listDeleted(store, fromMemory))
  const isPresent = (row: NodeRow) => !deleted.has(row)
  return { ...plan, late: plan.late.filter(isPresent), remembered: plan.remembered.filter(isPresent) }
}

/**
 * Packets stored by an earlier process are not new. Texts are read with their smallest number of hops, not only that of
 * the first reception.
 */
async function recall(store: Store, now: number, radios: readonly string[] | null): Promise<Memory> {
  if (radios !== null) await retireRadios(store, radios)
  const window = createPacketWindow()
  const sightings = window.open()
  const since = now - WINDOW_MS
  for (const packet of await readRecentPackets(store, since, radios)) sightings.see(packet)
  const texts = await queries(store).recentMessages.all({ since })
  for (const text of texts.toReversed())
    sightings.see({ ...text, isReadable: true, trustLevel: text.isProven === 1 ? 'signed' : 'plain' })
  sightings.commit()
  const local = await listLocalSources(store)
  const localNodes = new Map(
    local.flatMap(({ name, localNodeNum }) => (localNodeNum === null ? [] : [[name, localNodeNum] as const])),
  )
  return { window, localNodes, sources: new Set(), metrics: new Set() }
}

function statementsOf(
  store: Store,
  { plan, memory, now }: { readonly plan: Plan; readonly memory: Memory; readonly now: number },
  { nodes, count, newNodes }: Admission,
): Statement[] {
  const isHandshake = [...plan.sources.values()].some(({ localNodeNum }) => localNodeNum !== undefined)
  return [
    ...writeSources(store, [...plan.sources.values()]),
    ...disputeClaims(store, plan.disputed, now),
    ...writeChannels(store, plan.channels),
    ...count,
    ...writeNodes(store, nodes, newNodes),
    ...writeRefused(store, plan.refused),
    ...writeSuspicions(store, plan.suspicions),
    ...liftSuspicions(store, plan.lifted),
    ...(isHandshake ? [markLocalNodes(store)] : []),
    ...writeHearings(store, plan.hearings),
    ...writePositions(store, plan.positions),
    ...writeTelemetry(store, plan.telemetry, memory.metrics),
    ...writeMessages(store, plan.messages),
    ...fileMessages(store, plan.filings),
    ...refileMessages(store, plan.table.refilings()),
    ...writeTraffic(store, plan.traffic, now),
  ]
}
