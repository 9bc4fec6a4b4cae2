// What 500 alert rules add to the cost of storing packets: the same packets with and without them, in turn, by
// processor time.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createIngest } from '../../src/app/mesh/ingest/ingest.ts'
import type { Heard } from '../../src/app/mesh/ingest/heard.ts'
import { createFrameDecoder } from '../../src/meshtastic/link/framing.ts'
import { decodeFromRadio } from '../../src/meshtastic/link/from-radio.ts'
import { toRadioEvent } from '../../src/meshtastic/radio-event.ts'
import { openDatabase, type SqliteStore } from '../../src/node/database.ts'
import { median, report } from '../table.ts'
import { handshakeFrames, nodeNumOf, packetFrame } from '../load/traffic.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 9)
const PACKETS = 10_000
const NODES = 250
const BATCH = 200
const OWNERS = 10
const RULES = 500
const MOST_PERCENT = 5
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
    const writer = createIngest(store)
    const decoder = createFrameDecoder(decodeFromRadio)
    const read = (frame: Uint8Array): Heard[] =>
      decoder.push(frame, 0).map(({ message }) => ({ source: RADIO, event: toRadioEvent(message, Date.now(), false) }))
    await writer.store(handshakeFrames(NODES, 1).flatMap(read))
    const frames = Array.from({ length: PACKETS }, (_, index) =>
      packetFrame('mixture', index + 1, NODES, Date.now() - (PACKETS - index) * 1000),
    )
    const before = process.cpuUsage()
    for (let at = 0; at < frames.length; at += BATCH) await writer.store(frames.slice(at, at + BATCH).flatMap(read))
    const { user, system } = process.cpuUsage(before)
    // Rules that fail to be evaluated would cost nothing.
    const hasLooked = store.sqlite.prepare('select exists (select 1 from alert_anchors)').pluck().get() === 1
    if (withRules !== hasLooked) throw new Error('the rules about areas were not evaluated')
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
  const share = (watched / plain - 1) * 100
  const measured = `${share.toFixed(1)} % more: ${watched.toFixed(0)} instead of ${plain.toFixed(0)} ms of processor time`
  report(`${PACKETS} packets with ${RULES} alert rules`, measured, 'at most 5 % more', share <= MOST_PERCENT)
}
