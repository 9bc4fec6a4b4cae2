import { create, type DescField, type DescMessage, ScalarType, toBinary } from '@bufbuild/protobuf'
import { reflect } from '@bufbuild/protobuf/reflect'
import { expect, test } from 'vitest'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import { rollUp } from '../../../src/app/mesh/telemetry/roll-up.ts'
import { decodeFromRadio } from '../../../src/meshtastic/link/from-radio.ts'
import { MapReportSchema } from '../../../src/meshtastic/gen/mqtt_pb.ts'
import { DataSchema, MeshPacketSchema } from '../../../src/meshtastic/gen/packet_pb.ts'
import * as payloads from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { PositionSchema } from '../../../src/meshtastic/gen/position_pb.ts'
import { FromRadioSchema } from '../../../src/meshtastic/gen/stream_pb.ts'
import { TelemetrySchema } from '../../../src/meshtastic/gen/telemetry_pb.ts'
import { toRadioEvent } from '../../../src/meshtastic/radio-event.ts'
import { columnRules } from '../../../src/node/backup/tables/column-rules.ts'
import { tablesOf } from '../../../src/node/backup/tables/tables-of.ts'
import { type SqliteStore } from '../../../src/node/database.ts'
import { createSeededRandom } from '../../../src/node/radio/demo/seeded-random.ts'
import { START } from '../../support/app.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

const UNSIGNED = [0, 1, 7, 255, 0x7fffffff, 0x80000000, 0xd800, 0xffffffff]
const SIGNED = [0, 1, -1, 0x7fffffff, -0x80000000]
const REAL = [0, -0.5, 1.5, 3.4e38, Number.NaN, Infinity, -Infinity]
const LONG = [0n, 1n, 2n ** 63n - 1n]
const TEXT = ['', 'x', 'é 😀 \u0000 \u2028', '\ufffe', 'x'.repeat(300)]

/** The type of the payload, by port. */
const PORTS: readonly (readonly [PortNum, DescMessage])[] = [
  [PortNum.POSITION_APP, PositionSchema],
  [PortNum.NODEINFO_APP, payloads.UserSchema],
  [PortNum.TELEMETRY_APP, TelemetrySchema],
  [PortNum.ROUTING_APP, payloads.RoutingSchema],
  [PortNum.TRACEROUTE_APP, payloads.RouteDiscoverySchema],
  [PortNum.NEIGHBORINFO_APP, payloads.NeighborInfoSchema],
  [PortNum.WAYPOINT_APP, payloads.WaypointSchema],
  [PortNum.STORE_FORWARD_APP, payloads.StoreAndForwardSchema],
  [PortNum.MAP_REPORT_APP, MapReportSchema],
]

/** Messages that are possible on the wire and mean nothing; the same seed gives the same messages. */
function createScribbler(seed: number) {
  const random = createSeededRandom(seed)
  const one = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] ?? expect.fail('nothing to pick')
  const bytes = () => Uint8Array.from({ length: Math.floor(random() * 40) }, () => Math.floor(random() * 256))
  const scalar = (type: ScalarType): unknown => {
    switch (type) {
      case ScalarType.BOOL:
        return random() < 0.5
      case ScalarType.STRING:
        return one(TEXT)
      case ScalarType.BYTES:
        return bytes()
      case ScalarType.FLOAT:
      case ScalarType.DOUBLE:
        return one(REAL)
      case ScalarType.UINT64:
      case ScalarType.INT64:
      case ScalarType.FIXED64:
      case ScalarType.SFIXED64:
      case ScalarType.SINT64:
        return one(LONG)
      case ScalarType.UINT32:
      case ScalarType.FIXED32:
        return one(UNSIGNED)
      default:
        return one(SIGNED)
    }
  }
  const value = (field: DescField, depth: number): unknown => {
    if (field.scalar !== undefined) return scalar(field.scalar)
    if (field.enum !== undefined) return one([...field.enum.values.map(({ number }) => number), 99])
    return field.message === undefined ? undefined : reflect(field.message, write(field.message, depth + 1))
  }
  const write = (schema: DescMessage, depth = 0) => {
    const message = reflect(schema, create(schema))
    for (const field of schema.fields) {
      if (field.fieldKind === 'map' || depth > 4 || random() < 0.4) continue
      if (field.fieldKind !== 'list') message.set(field, value(field, depth))
      else for (let n = random() * 3; n > 1; n--) message.get(field).add(value(field, depth))
    }
    return message.message
  }
  const packet = () => {
    const [portnum, schema] = one(PORTS)
    const from = one([1, 2, 3, 0xffffffff, 0])
    const content = write(schema)
    // A waypoint that is locked to somebody else than its sender is refused.
    if (portnum === PortNum.WAYPOINT_APP) Object.assign(content, { lockedTo: one([0, from, 7]) })
    const payload = random() < 0.1 ? bytes() : toBinary(schema, content)
    const isText = random() < 0.1
    const data = create(DataSchema, { portnum: isText ? PortNum.TEXT_MESSAGE_APP : portnum, payload })
    const packet = create(MeshPacketSchema, {
      ...Object(write(MeshPacketSchema)),
      from,
      id: Math.floor(random() * 1e9),
      payloadVariant: { case: 'decoded', value: data },
    })
    return create(FromRadioSchema, { payloadVariant: { case: 'packet', value: packet } })
  }
  return () => toBinary(FromRadioSchema, random() < 0.7 ? packet() : Object(write(FromRadioSchema)))
}

/** Invalid cells of a backup, with counts. */
function refusedCells({ sqlite }: SqliteStore): Map<string, number> {
  const rules = columnRules(sqlite)
  const refused = new Map<string, number>()
  for (const [table, columns] of tablesOf(sqlite)) {
    for (const row of sqlite.prepare<[], Record<string, unknown>>(`select * from "${table}"`).all()) {
      for (const column of columns) {
        const cell = row[column]
        const isCell = typeof cell === 'string' || typeof cell === 'number' || cell === null
        const problem = isCell ? (rules.get(table)?.get(column)?.(cell) ?? null) : 'is no cell'
        const what = `${table}.${column} ${problem}`
        if (problem !== null) refused.set(what, (refused.get(what) ?? 0) + 1)
      }
    }
  }
  return refused
}

test.each([1, 2, 3])('whatever a radio sends, the stored data makes a valid backup (seed %d)', async (seed) => {
  const store = openMemoryStore()
  const ingest = createIngest(store)
  const next = createScribbler(seed)
  const count = (table: string) => store.sqlite.prepare(`select count(*) from ${table}`).pluck().get()
  // Each report replaces the neighbours before, and most reports have none: those that are there are checked at once.
  let neighbors = 0
  for (let batch = 0; batch < 60; batch++) {
    const heard = Array.from({ length: 50 }, () => decodeFromRadio(next())).flatMap((message) =>
      message === null
        ? []
        : [{ source: { kind: 'tcp', name: 'r' } as const, event: toRadioEvent(message, START + batch * 1000, false) }],
    )
    await ingest.store(heard)
    const present = Number(count('neighbors'))
    if (present > neighbors) expect(refusedCells(store)).toStrictEqual(new Map())
    neighbors = Math.max(neighbors, present)
  }
  await rollUp(store, async () => true)
  expect(neighbors).toBeGreaterThan(0)
  for (const table of ['nodes', 'telemetry', 'telemetry_daily', 'packets', 'messages', 'waypoints']) {
    expect([table, Number(count(table)) > 0]).toStrictEqual([table, true])
  }
  expect(refusedCells(store)).toStrictEqual(new Map())
  store.close()
})
