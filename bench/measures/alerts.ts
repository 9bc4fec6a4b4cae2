// What 500 alert rules add to the cost of storing packets: the same packets with and without them, in turn, by
// processor time.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { alertsOnBatch } from '../../src/app/alerts/findings/on-batch.ts'
import { createIngest } from '../../src/app/mesh/ingest/ingest.ts'
import type { Heard } from '../../src/app/mesh/heard/heard.ts'
import { createFrameDecoder } from '../../src/meshtastic/link/framing.ts'
import { decodeFromRadio } from '../../src/meshtastic/link/from-radio.ts'
import { toRadioEvent } from '../../src/meshtastic/radio-event.ts'
import { openDatabase, type SqliteStore } from '../../src/node/database.ts'
import { median, report } from '../table.ts'
import { handshakeFrames, nodeNumOf, packetFrame } from '../load/traffic.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 9)
const PACKETS = 30_000
const WARM_UP = 2000
/** Rules about places and keys are evaluated at most this often. */
const EVALUATED_EVERY_MS = 1100
const NODES = 250
const BATCH = 200
const OWNERS = 10
const RULES = 500
const MAX_PERCENT = 5
const RADIO = { kind: 'tcp', name: 'bench' } as const

const LIST = { kind: 'list', nodes: Array.from({ length: 200 }, (_, index) => nodeNumOf(index)) }
/** A tenth of each kind; none of their words occurs, as on most days. */
const KINDS = [
  { kind: 'node_silent', nodes: LIST, afterMinutes: 60 },
  { kind: 'metric', nodes: LIST, metric: 'deviceMetrics.batteryLevel', is: 'below', limit: 20 },
  { kind: 'node_new' },
  { kind: 'node_restarted', nodes: LIST },
  { kind: 'area', nodes: LIST, when: 'moves', metres: 500 },
  { kind: 'message', match: { words: ['no such word', 'nor this one'] } },
  { kind: 'key', nodes: LIST },
  { kind: 'link', afterMinutes: 10 },
  { kind: 'backup' },
  { kind: 'sign_in' },
]

function addRules({ sqlite }: SqliteStore): void {
  const user = sqlite.prepare(
    "insert into users (username, auth_provider, is_admin, created_at) values (?, 'local', 1, 1)",
  )
  const rule = sqlite.prepare(
    'insert into alert_rules (uid, owner_id, name, kind, enabled, rule, revision, anchor_at, created_at, updated_at) values (?, ?, ?, ?, 1, ?, 1, 1, 1, 1)',
  )
  for (let owner = 1; owner <= OWNERS; owner++) user.run(`owner ${owner}`)
  for (let n = 0; n < RULES; n++) {
    const watched = KINDS[n % KINDS.length]
    const text = JSON.stringify({ name: `Rule ${n}`, ...watched })
    rule.run(`rule ${n}`, 1 + (n % OWNERS), `Rule ${n}`, watched?.kind, text)
  }
}

async function ingest(withRules: boolean): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-alerts-'))
  const store = openDatabase(join(dir, 'mesh.db'))
  try {
    if (withRules) addRules(store)
    const writer = createIngest(store, { onBatch: alertsOnBatch })
    const decoder = createFrameDecoder(decodeFromRadio)
    const read = (frame: Uint8Array): Heard[] =>
      decoder.push(frame, 0).map(({ message }) => ({ source: RADIO, event: toRadioEvent(message, Date.now(), false) }))
    await writer.store(handshakeFrames(NODES, 1).flatMap(read))
    const frames = Array.from({ length: WARM_UP + PACKETS }, (_, index) =>
      packetFrame('mixture', index + 1, NODES, Date.now() - (WARM_UP + PACKETS - index) * 1000),
    )
    const storeFrames = async (from: number, to: number) => {
      for (let at = from; at < to; at += BATCH) await writer.store(frames.slice(at, at + BATCH).flatMap(read))
    }
    // Done once, not for each packet: reading the rules, and storing where their nodes are at first.
    await storeFrames(0, WARM_UP - BATCH)
    await wait(EVALUATED_EVERY_MS)
    await storeFrames(WARM_UP - BATCH, WARM_UP)
    // Rules that fail to be evaluated would cost nothing.
    const hasLooked = store.sqlite.prepare('select exists (select 1 from alert_anchors)').pluck().get() === 1
    if (withRules !== hasLooked) throw new Error('the rules about areas were not evaluated')
    const before = process.cpuUsage()
    await storeFrames(WARM_UP, frames.length)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  } finally {
    store.close()
    rmSync(dir, { recursive: true })
  }
}

export async function measureAlerts(): Promise<void> {
  await ingest(true)
  const without: number[] = []
  const withRules: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    without.push(await ingest(false))
    withRules.push(await ingest(true))
  }
  const [plain, watched] = [median(without), median(withRules)]
  // Of each pair that ran one after the other, as the machine's speed varies.
  const share = (median(withRules.map((cost, round) => cost / (without[round] ?? Number.NaN))) - 1) * 100
  const measured = `${share.toFixed(1)} % more: ${watched.toFixed(0)} instead of ${plain.toFixed(0)} ms of processor time`
  report(`${PACKETS} packets with ${RULES} alert rules`, measured, 'at most 5 % more', share <= MAX_PERCENT)
}
