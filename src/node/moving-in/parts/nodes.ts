import { sql } from 'drizzle-orm'
import type { NodeRow } from '../../../app/mesh/ingest/rows/node-row.ts'
import { writeNodes } from '../../../app/mesh/ingest/rows/nodes.ts'
import { nodes } from '../../../db/schema.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { removeHidden } from '../../../shared/hidden-characters.ts'
import { MAX_NOTES } from '../../../shared/limits.ts'
import { UNKNOWN_CHANNEL } from '../../../shared/mesh/channels.ts'
import { type Job, plausibleTime } from '../job.ts'
import { flagIn, integerIn, nodeNumIn, numberIn, type Row, textIn } from '../source/row.ts'
import { type Places, withheld } from './places.ts'

const COLUMNS = [
  'nodeNum',
  'sourceId',
  'longName',
  'shortName',
  'hwModel',
  'role',
  'hopsAway',
  'viaMqtt',
  'latitude',
  'longitude',
  'altitude',
  'batteryLevel',
  'voltage',
  'channelUtilization',
  'airUtilTx',
  'lastHeard',
  'snr',
  'rssi',
  'firmwareVersion',
  'channel',
  'isFavorite',
  'isIgnored',
  'publicKey',
  'positionChannel',
  'positionPrecisionBits',
  'positionTimestamp',
  'positionOverrideEnabled',
  'positionOverrideIsPrivate',
  'createdAt',
  'updatedAt',
  'hideFromMap',
  'isLicensed',
  'notes',
  'transportLastRf',
  'transportLastMqtt',
  'nodeStatus',
  'nodeStatusUpdatedAt',
]
const ROWS_AT_ONCE = 20
const SECOND_MS = 1000
const MAX_STATUS = 200

type Found = { readonly row: NodeRow; readonly isHidden: boolean; readonly notes: string }

/**
 * Adds and completes nodes: each field from the source that heard the node last, and only over what is older here. What
 * somebody decided here stays. `isFirst`: nothing was imported before, so that what is hidden there is hidden here.
 * Returns the numbers of all nodes of the file that this service has then.
 */
export async function importNodes(
  job: Job,
  places: Places,
  { isFirst }: { readonly isFirst: boolean },
): Promise<ReadonlySet<number>> {
  const { source, tally, writer, ctx } = job
  const { sqlite } = ctx.store
  const known = new Map(
    sqlite
      .prepare<[], { node_num: number; public_key: string | null; is_hidden: number }>(
        'select node_num, public_key, is_hidden from nodes',
      )
      .all()
      .map((row) => [row.node_num, row]),
  )
  const deleted = new Set(sqlite.prepare<[], number>('select node_num from deleted_nodes').pluck().all())
  const byNode = Map.groupBy([...source.rows('nodes', COLUMNS)], (row) => nodeNumIn(row, 'nodeNum'))
  const found: Found[] = []
  for (const [nodeNum, rows] of byNode) {
    if (nodeNum === null || nodeNum === BROADCAST) continue
    tally.found('nodes')
    const one = mergeRows(job, places, nodeNum, rows)
    if (deleted.has(nodeNum)) {
      tally.lost('nodes_deleted_here', one.row.longName ?? String(nodeNum))
      continue
    }
    if (rows.some((row) => flagIn(row, 'positionOverrideEnabled'))) tally.lost('position_overrides', one.row.longName)
    const held = known.get(nodeNum)
    if (held === undefined) {
      found.push(one)
      if (!writer.isDry) tally.added('nodes')
      continue
    }
    if (one.isHidden && !isFirst && held.is_hidden === 0) tally.lost('nodes_not_hidden', one.row.longName)
    // The key that is known here stays, and only what is heard casts doubt on it.
    const { publicKey, ...rest } = one.row
    found.push({ ...one, row: held.public_key === null ? { ...rest, publicKey: publicKey ?? null } : rest })
  }
  for (let at = 0; at < found.length; at += ROWS_AT_ONCE) {
    const slice = found.slice(at, at + ROWS_AT_ONCE)
    const hidden = slice.flatMap(({ isHidden, row: { nodeNum } }) =>
      isHidden && (isFirst || !known.has(nodeNum)) ? [nodeNum] : [],
    )
    await writer.atomic([
      ...writeNodes(ctx.store, { remembered: [], late: slice.map(({ row }) => row), heard: [] }, new Set()),
      // Never visible, not even until the next transaction.
      ctx.store.db
        .update(nodes)
        .set({ isHidden: true })
        .where(sql`node_num in (select value from json_each(${JSON.stringify(hidden)})) and not is_hidden`),
    ])
  }
  const note = sqlite.prepare("update nodes set notes = ? where node_num = ? and notes = ''")
  await writer.each(
    found.filter(({ notes }) => notes !== ''),
    ({ row, notes }) => note.run(notes, row.nodeNum).changes > 0,
  )
  return new Set(found.map(({ row }) => row.nodeNum))
}

function mergeRows(job: Job, places: Places, nodeNum: number, unsorted: readonly Row[]): Found {
  const rows = unsorted.toSorted((a, b) => heardAt(b) - heardAt(a))
  const latest = <T>(read: (row: Row) => T | null): T | null => {
    for (const row of rows) {
      const value = read(row)
      if (value !== null) return value
    }
    return null
  }
  const text = (column: string) => latest((row) => textIn(row, column))
  const number = (column: string) => latest((row) => numberIn(row, column))
  const seconds = (column: string) =>
    latest((row) => plausibleTime(job, (integerIn(row, column) ?? 0) * SECOND_MS || null))
  const [first] = rows
  const lastHeard = seconds('lastHeard')
  const hopsAway = number('hopsAway')
  const longName = clean(text('longName'))
  const shortName = clean(text('shortName'))
  const origin = latest((row) => places.originOf(textIn(row, 'sourceId'))) ?? places.origins[0]
  const created = rows.flatMap((row) => plausibleTime(job, integerIn(row, 'createdAt')) ?? [])
  const firstHeard = Math.min(...created, lastHeard ?? job.now)
  const metrics = {
    batteryLevel: number('batteryLevel'),
    voltage: number('voltage'),
    channelUtilization: number('channelUtilization'),
    airUtilTx: number('airUtilTx'),
  }
  const hasMetrics = Object.values(metrics).some((value) => value !== null)
  const status = text('nodeStatus')
  return {
    isHidden: rows.some(
      (row) =>
        flagIn(row, 'hideFromMap') ||
        (flagIn(row, 'positionOverrideEnabled') && flagIn(row, 'positionOverrideIsPrivate')),
    ),
    notes: (text('notes') ?? '').slice(0, MAX_NOTES),
    row: {
      nodeNum,
      source: origin?.name ?? '',
      seenAt: lastHeard ?? firstHeard,
      longName: longName.text,
      shortName: shortName.text,
      nameAltered: longName.isAltered || shortName.isAltered,
      hwModel: number('hwModel'),
      role: number('role'),
      isLicensed: latest((row) => (flagIn(row, 'isLicensed') ? true : null)) ?? false,
      publicKey: latest((row) => keyIn(row)),
      firmwareVersion: text('firmwareVersion'),
      lastHeard,
      firstHeard,
      lastHeardByRadio: seconds('transportLastRf'),
      lastHeardByBroker: seconds('transportLastMqtt'),
      hopsAway,
      snr: hopsAway === 0 ? number('snr') : null,
      rssi: hopsAway === 0 ? number('rssi') : null,
      viaMqtt: first !== undefined && flagIn(first, 'viaMqtt'),
      channel: latest((row) => {
        const index = integerIn(row, 'channel')
        return index === null ? null : places.numberOf(textIn(row, 'sourceId'), index)
      }),
      isFavorite: rows.some((row) => flagIn(row, 'isFavorite')),
      isIgnored: rows.some((row) => flagIn(row, 'isIgnored')),
      ...placeOf(job, places, rows),
      ...(hasMetrics && {
        ...metrics,
        deviceMetricsTime: metricsTime(job, nodeNum) ?? lastHeard,
        metricsChannel: UNKNOWN_CHANNEL,
      }),
      ...(status !== null && {
        status: removeHidden(status).slice(0, MAX_STATUS),
        statusTime: latest((row) => plausibleTime(job, integerIn(row, 'nodeStatusUpdatedAt'))),
        statusChannel: UNKNOWN_CHANNEL,
      }),
    },
  }
}

function heardAt(row: Row): number {
  return integerIn(row, 'lastHeard') ?? 0
}

function clean(name: string | null): { readonly text: string | null; readonly isAltered: boolean } {
  const text = name === null ? null : removeHidden(name)
  return { text, isAltered: text !== name }
}

function keyIn(row: Row): string | null {
  const key = textIn(row, 'publicKey')
  return key !== null && /^[A-Za-z0-9+/]{43}=$/.test(key) ? key : null
}

/** The position that is newest by its own time. */
function placeOf(job: Job, places: Places, rows: readonly Row[]): Partial<NodeRow> {
  const [best] = rows
    .filter((row) => isPlace(numberIn(row, 'latitude'), numberIn(row, 'longitude')))
    .toSorted((a, b) => (integerIn(b, 'positionTimestamp') ?? 0) - (integerIn(a, 'positionTimestamp') ?? 0))
  if (best === undefined) return {}
  const index = integerIn(best, 'positionChannel')
  return {
    latitude: numberIn(best, 'latitude'),
    longitude: numberIn(best, 'longitude'),
    altitude: numberIn(best, 'altitude'),
    precisionBits: integerIn(best, 'positionPrecisionBits'),
    positionTime: plausibleTime(job, integerIn(best, 'positionTimestamp')),
    positionChannel: withheld(places.numberOf(textIn(best, 'sourceId'), index)),
  }
}

/** Whether both are there, on Earth, and not the point that a receiver without a fix reports. */
export function isPlace(latitude: number | null, longitude: number | null): boolean {
  if (latitude === null || longitude === null) return false
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 && (latitude !== 0 || longitude !== 0)
}

const METRICS = ['batteryLevel', 'voltage', 'channelUtilization', 'airUtilTx']
/** The index with the latest measurement of a type. SQLite chooses another if it is not named, and reads a whole node. */
const LATEST = 'idx_telemetry_type_node_ts'

/** When the device metrics of a node were stored last; null if it would take long to find out. */
function metricsTime(job: Job, nodeNum: number): number | null {
  const { source } = job
  if (!source.hasIndex(LATEST)) return null
  const nodeId = `!${nodeNum.toString(16).padStart(8, '0')}`
  const times = METRICS.flatMap((type) => {
    const row = source.one(
      `select timestamp as t from telemetry indexed by ${LATEST} where telemetryType = ? and nodeId = ?
        order by timestamp desc limit 1`,
      type,
      nodeId,
    )
    return row === undefined ? [] : (integerIn(row, 't') ?? [])
  })
  return times.length === 0 ? null : plausibleTime(job, Math.max(...times))
}
