import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import type { Heard } from '../../../../src/app/mesh/heard/heard.ts'
import { WINDOW_SIZE } from '../../../../src/app/mesh/ingest/duplicates/packet-window.ts'
import { createIngest, storeBatch } from '../../../../src/app/mesh/ingest/ingest.ts'
import { recountAll } from '../../../../src/app/retention/recount.ts'
import { trimPages } from '../../../../src/app/upkeep/packet-pages.ts'
import { deleteOldProven } from '../../../../src/app/upkeep/proven-packets.ts'
import { enforceRowQuotas } from '../../../../src/app/upkeep/row-quotas.ts'
import { deleteOld } from '../../../../src/app/upkeep/upkeep.ts'
import { openDatabase, type SqliteStore } from '../../../../src/node/database.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../src/shared/time.ts'
import { START } from '../../../support/app.ts'
import { keptLog, makeBackup, makeDataDir, tryRestore } from '../../../support/backup/backup.ts'
import { openMemoryStore } from '../../../support/memory-store.ts'
import { heard, LOCAL, myInfo, packet, text } from '../../../support/mesh/mesh.ts'
import { createSigner } from '../../../support/mesh/signer.ts'
import type { FromRadioVariant } from '../../../support/radio/device.ts'

const BROKER = { kind: 'mqtt', name: 'mqtt://broker' } as const
const signer = createSigner(1)
const goesOn = async () => true

let edge: SqliteStore
beforeEach(() => {
  edge = { ...openMemoryStore(), packs: true }
})
afterEach(() => edge.close())

const pluck = (store: SqliteStore, sql: string) => store.sqlite.prepare(sql).pluck().get()
const all = (store: SqliteStore, sql: string) => store.sqlite.prepare(sql).all()
const proven = (store: SqliteStore) =>
  all(store, 'select packet_id id, t, proven from proven_packets order by packet_id')

/** By which of the two a store is written. Each has nothing in its memory yet. */
const WAYS = {
  'beside other writers': async (store: SqliteStore, batch: readonly Heard[]) =>
    (await storeBatch(store, batch, { known: null, radios: null, now: START })).news,
  'by the only writer': async (store: SqliteStore, batch: readonly Heard[]) =>
    (await createIngest(store).store(batch)).news,
}
const ways = Object.entries(WAYS).map(([name, deliver]) => ({ name, deliver }))
const publish = (variants: readonly FromRadioVariant[], at = START) =>
  WAYS['beside other writers'](
    edge,
    variants.map((each) => heard(each, { at, source: BROKER })),
  )
const hear = (variants: readonly FromRadioVariant[], at = START) =>
  WAYS['beside other writers'](
    edge,
    variants.map((each) => heard(each, { at })),
  )

/** What pushes packets out of the log. */
const LOSSES: Readonly<Record<string, (store: SqliteStore) => unknown>> = {
  // The pages between are as if they were deleted one by one.
  'a flood': ({ sqlite }) =>
    sqlite.exec(`insert into packet_pages select last_id + ${WINDOW_SIZE + 1}, last_id + ${WINDOW_SIZE + 1}, 0, t_last,
      t_last, 0, '[]', '[]', '[]', '[]', '[]' from packet_pages order by first_id desc limit 1`),
  'a full log': async (store) => {
    await LOSSES['a flood']?.(store)
    expect(await trimPages(store, 0, goesOn)).toBeGreaterThan(0)
  },
}
const losses = Object.entries(LOSSES).map(([loss, lose]) => ({ loss, lose }))
const later = [
  { after: 'an hour', at: START + HOUR_MS },
  { after: 'a day', at: START + DAY_MS },
]
const everyCase = ways.flatMap((way) => losses.flatMap((loss) => later.map((when) => ({ ...way, ...loss, ...when }))))

describe('a proven packet that the log lost', () => {
  it.each(everyCase)('to $loss is not new $after later, $name', async ({ deliver, lose, at }) => {
    const old = [signer.packet(signer.user({ longName: 'Old name' })), signer.packet(text('open the gate'))]
    const direct = { from: signer.nodeNum, to: LOCAL, pkiEncrypted: true, publicKey: signer.publicKey }
    const sealed = packet(text('open it'), direct)
    await hear([myInfo, ...old, sealed])
    await publish([signer.packet(signer.user({ longName: 'New name' }))], START + MINUTE_MS)
    await lose(edge)
    const state = () =>
      ['nodes', 'messages', 'receptions', 'proven_packets'].map((t) => all(edge, `select * from ${t}`))
    const before = [...state(), all(edge, 'select * from logged')]
    expect(proven(edge)).toHaveLength(4)
    const again = [...old, sealed].map((each, n) => heard(each, { at, ...(n < 2 && { source: BROKER }) }))
    expect(await deliver(edge, again)).toStrictEqual([])
    const [nodes, messages, , remembered, log] = [...state(), all(edge, 'select * from logged')]
    expect([nodes, messages, remembered, log]).toStrictEqual([before[0], before[1], before[3], before[4]])
    // Another one of the same sender is.
    const next = signer.packet(text('hello'))
    expect(await deliver(edge, [heard(next, { at, source: BROKER })])).toMatchObject([{ isSigned: true }])
  })

  it.each(losses)('to $loss is not new where its key was not known at first', async ({ lose }) => {
    const [early, late] = [signer.packet(text('early'), { id: 71 }), signer.packet(text('late'), { id: 72 })]
    await publish([early, late])
    await publish([signer.packet(signer.user({ longName: 'Hill' }), { id: 73 })], START + 1)
    expect(proven(edge)).toStrictEqual([
      { id: 71, t: START, proven: 0 },
      { id: 72, t: START, proven: 0 },
      { id: 73, t: START + 1, proven: 1 },
    ])
    await lose(edge)
    // Within six hours the proof is news, once.
    expect(await publish([early], START + HOUR_MS)).toStrictEqual([])
    expect(proven(edge)).toMatchObject([{ t: START, proven: 1 }, { proven: 0 }, { proven: 1 }])
    await lose(edge)
    const log = all(edge, 'select * from logged')
    expect(await publish([early], START + 2 * HOUR_MS)).toStrictEqual([])
    expect(await publish([early, late], START + DAY_MS)).toStrictEqual([])
    expect(all(edge, 'select * from logged')).toStrictEqual(log)
  })

  describe.each([
    { who: 'after the sender', order: [START, START - 8 * DAY_MS] },
    { who: 'before the sender', order: [START - 8 * DAY_MS, START] },
  ])('and that a collector with a wrong clock delivered $who', ({ order }) => {
    it('is not new after the old ones were deleted', async () => {
      const said = signer.packet(text('open the gate'))
      await publish([signer.packet(signer.user({ longName: 'Hill' }))])
      for (const at of order) await publish([said], at)
      await LOSSES['a full log']?.(edge)
      await deleteOldProven(edge, START - 7 * DAY_MS, { pause: goesOn })
      expect(await publish([said], START + DAY_MS)).toStrictEqual([])
    })
  })

  it('is not new where the first copy had no signature, and the second could not be checked', async () => {
    const said = text('open the gate')
    await publish([packet(said, { from: signer.nodeNum, id: 82 })])
    await publish([signer.packet(said, { id: 82 })], START + 1)
    await publish([signer.packet(signer.user({ longName: 'Hill' }))], START + 2)
    await LOSSES['a full log']?.(edge)
    expect(await publish([signer.packet(said, { id: 82 })], START + DAY_MS)).toStrictEqual([])
  })

  it('is not new with its signature, if a gateway published it without one', async () => {
    await publish([signer.packet(signer.user({ longName: 'Hill' }))])
    const said = text('open the gate')
    // Over a link that never brought a signature.
    const other = { kind: 'mqtt', name: 'mqtt://other' } as const
    const bare = packet(said, { from: signer.nodeNum, id: 81 })
    await WAYS['beside other writers'](edge, [heard(bare, { at: START, source: other })])
    await LOSSES['a full log']?.(edge)
    expect(await publish([signer.packet(said, { id: 81 })], START + DAY_MS)).toStrictEqual([])
    expect(pluck(edge, 'select signed from messages')).toBe(0)
  })
})

describe('a packet', () => {
  const forged = (id: number) => {
    const data = {
      ...text('forged'),
      xeddsaSignature: createSigner(2).sign({ from: signer.nodeNum, id, data: text('x') }),
    }
    return packet(data, { from: signer.nodeNum, id })
  }

  it.each(ways)('that somebody forged does not block that of the sender, $name', async ({ deliver }) => {
    await publish([signer.packet(signer.user({ longName: 'Hill' }), { id: 90 })])
    await publish([forged(91), forged(92)])
    expect(all(edge, 'select packet_id id, trust_level trust from logged where packet_id > 90 order by 1')).toEqual([
      { id: 91, trust: 'spoofed' },
      { id: 92, trust: 'spoofed' },
    ])
    expect(proven(edge)).toMatchObject([{ id: 90 }])
    for (const [id, at] of [
      [91, START + HOUR_MS],
      [92, START + DAY_MS],
    ] as const) {
      await LOSSES['a full log']?.(edge)
      const own = signer.packet(text('true'), { id })
      expect(await deliver(edge, [heard(own, { at, source: BROKER })])).toMatchObject([{ isSigned: true }])
    }
  })

  it('that nobody can prove is not remembered, nor one without an id, nor by a store of rows', async () => {
    await publish([packet(text('plain')), packet(text('to you'), { to: 9 }), signer.packet(text('no id'), { id: 0 })])
    expect(proven(edge)).toStrictEqual([])
    const node = { ...edge, packs: false }
    await WAYS['by the only writer'](node, [heard(signer.packet(text('x')), { source: BROKER })])
    expect(proven(edge)).toStrictEqual([])
  })
})

test('a backup of the edge restored on Node still refuses what is sent again', async () => {
  const [here, there] = [makeDataDir(), makeDataDir()]
  try {
    const file = openDatabase(here.database)
    const said = [signer.packet(text('open the gate')), signer.packet(text('close it'))]
    const first = said.map((each) => heard(each, { source: BROKER }))
    const name = signer.packet(signer.user({ longName: 'Hill' }))
    await WAYS['beside other writers']({ ...file, packs: true }, [heard(name, { source: BROKER }), ...first])
    await LOSSES['a full log']?.({ ...file, packs: true })
    await recountAll({ ...file, packs: true }, { pause: goesOn })
    file.close()
    const backup = await makeBackup(here.dataDir)
    mkdirSync(there.backups)
    cpSync(join(here.backups, backup), join(there.backups, backup), { recursive: true })
    expect(await tryRestore(there.dataDir, backup)).toStrictEqual([expect.stringContaining('Restore completed')])
    const node = openDatabase(there.database)
    expect([node.packs, proven(node).length]).toStrictEqual([false, 3])
    for (const at of [START + HOUR_MS, START + DAY_MS]) {
      const again = said.map((each) => heard(each, { at, source: BROKER }))
      expect(await WAYS['by the only writer'](node, again)).toStrictEqual([])
    }
    expect(pluck(node, 'select count(*) from packets')).toBe(0)
    // Nothing counts them there, so no count may tell that there are too many.
    expect(pluck(node, "select count(*) from row_counts where table_name = 'proven_packets'")).toBe(0)
    node.close()
  } finally {
    here.remove()
    there.remove()
  }
})

const numbers = (count: number) => `with recursive i(n) as (select 1 union all select n + 1 from i where n < ${count})`

describe('what is remembered', () => {
  it('is deleted when the packets of its time are, in slices', async () => {
    const now = START + 30 * DAY_MS
    edge.sqlite.exec(
      `${numbers(9000)} insert into proven_packets select n % 7, n, ${now} - n * ${14 * DAY_MS} / 9000, 1 from i`,
    )
    const { log } = keptLog()
    let runs = 0
    let pauses = 0
    // A run ends after each slice.
    const each = () => async () => {
      pauses++
      return false
    }
    const retain = () => deleteOld({ store: edge, log, now: () => now }, goesOn, () => 1, { each, restMs: HOUR_MS })
    while (pluck(edge, `select min(t) from proven_packets`) !== now - 7 * DAY_MS && runs++ < 9) await retain()
    expect(pluck(edge, 'select count(*) from proven_packets')).toBe(4500)
    expect([runs > 3, pauses > 3]).toStrictEqual([true, true])
    // The pass ends, and the next one rests.
    for (let n = 0; n < 9; n++) await retain()
    const rest = { pause: goesOn, restMs: HOUR_MS }
    expect(await deleteOldProven(edge, now - 7 * DAY_MS + HOUR_MS - 1, rest)).toBe(0)
    expect(await deleteOldProven(edge, now - 7 * DAY_MS + HOUR_MS, rest)).toBeGreaterThan(0)
  })

  it('has shares of nodes: whoever sends most loses what is not proven first, and then the oldest', async () => {
    const { sqlite } = edge
    const day = Math.floor(START / DAY_MS)
    // Nodes known for long, and senders that are none.
    sqlite.exec(`insert into nodes (node_num, first_heard, last_heard, days_heard, last_heard_day)
      select value, 1, ${START}, 40, ${day} from json_each('[7, 8, 9]');
      ${numbers(20)} insert into proven_packets select 7, n, n, n % 2 from i;
      ${numbers(3000)} insert into proven_packets select 8, n, n, n <= 2000 from i;
      ${numbers(1000)} insert into proven_packets select 9, n, n, n <= 600 from i;
      ${numbers(500)} insert into proven_packets select 1000 + n, n, n, 1 from i`)
    const keep = (most: number) => enforceRowQuotas(edge, goesOn, { now: START, most: { proven_packets: most } })
    const kept = (from: number) =>
      Number(pluck(edge, `select count(*) from proven_packets where from_node_num = ${from}`))
    const places = (from: number) =>
      all(edge, `select max(packet_id) last, min(packet_id) first from proven_packets where from_node_num = ${from}`)
    // Those that are no nodes share one.
    const share = Math.floor((1000 - 20) / 3)
    // Nothing counts them until it matters.
    expect(await keep(1000)).toStrictEqual({})
    await recountAll(edge, { pause: goesOn })
    expect(await keep(4520)).toStrictEqual({})
    expect(await keep(1000)).toStrictEqual({ proven_packets: 4520 - 20 - 3 * share })
    expect(pluck(edge, 'select count(*) from proven_packets where from_node_num > 1000')).toBe(share)
    expect(kept(7)).toBe(20)
    expect(kept(8) + kept(9)).toBe(2 * share)
    expect(Math.abs(kept(8) - kept(9))).toBeLessThanOrEqual(2)
    expect(places(8)).toStrictEqual([{ last: 2000, first: 2001 - kept(8) }])
    expect(places(9)).toStrictEqual([{ last: 600, first: 601 - kept(9) }])
  })
})
