import { expect, it } from 'vitest'
import { createIngest } from '../../../../src/app/mesh/ingest/ingest.ts'
import type { Statement, Store } from '../../../../src/db/store.ts'
import {
  createTestMesh,
  heard,
  myInfo,
  nodeInfo,
  packet,
  position,
  telemetry,
  text,
  user,
} from '../../../support/mesh/mesh.ts'

const GROWING = ['messages', 'receptions', 'packets', 'telemetry', 'positions', 'nodes', 'message_events']
const BROKER = { kind: 'mqtt', name: 'broker' } as const

/** How SQLite carries out the statements of a store, one line for each step. */
function watchPlans(store: Store, plans: Set<string>, explain: (query: string, params: unknown[]) => string[]): Store {
  const atomic = async (statements: readonly [Statement, ...Statement[]]) => {
    for (const statement of statements) {
      const { sql, params } = Object(statement)['_prepare']().getQuery()
      for (const step of explain(sql, params)) plans.add(step)
    }
    return store.atomic(statements)
  }
  return { ...store, atomic }
}

it('storing costs the same however much is stored: no statement scans a growing table', async () => {
  const { app } = await createTestMesh()
  const plans = new Set<string>()
  const explain = (query: string, params: unknown[]) =>
    app.store.sqlite
      .prepare(`explain query plan ${query}`)
      .all(params)
      .map((step) => String(Object(step).detail))
  const ingest = createIngest(watchPlans(app.store, plans, explain))
  const said = packet(text('hello'))
  const others = [
    packet(user({ id: 'x', longName: 'Far' })),
    packet(position({ latitudeI: 1, longitudeI: 2 })),
    packet(telemetry({ variant: { case: 'deviceMetrics', value: { voltage: 4 } } })),
    nodeInfo({ num: 7 }),
  ]
  await ingest.store([heard(said, { source: BROKER }), heard(myInfo)])
  // A new source and a new radio may cost more: they are rare.
  plans.clear()
  await ingest.store([said, ...others].map((each) => heard(each)))
  expect([...plans].some((step) => step.includes('messages_from_packet'))).toBe(true)
  const visits = [...plans].filter((step) => GROWING.some((table) => new RegExp(`^SCAN ${table}\\b`).test(step)))
  expect(visits).toStrictEqual([])
  app.close()
})
