// How long other people's reads wait while packets are stored on a card on which each flush takes long.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Waits } from '../load/prober.ts'
import { ask, startHelper, stop } from '../servers/processes.ts'
import { report } from '../table.ts'
import { slowFlushes } from '../../test/faults/slow-flushes.ts'
import { openSite } from './packets.ts'

const FLUSH_MS = 60
const NODES = 250
const SECONDS = Number(process.env['BENCH_LIVE_SECONDS'] ?? 60)
const P99_MS = 30
const READS = ['/api/health', '/api/nodes', '/api/messages', '/api/messages?q=the', '/api/packets', '/api/dashboard']

export async function measureSlowCard(scratch: string): Promise<void> {
  for (const packets of [5, 50]) {
    const work = `reads while ${packets} packets/s are stored, ${FLUSH_MS} ms a flush`
    if (!existsSync('/usr/bin/strace')) {
      report(work, 'not measured: needs strace', `p99 ≤ ${P99_MS} ms`, null)
      continue
    }
    const site = await openSite(scratch, NODES, 1)
    const { port, child } = site.service
    const prober = startHelper(new URL('../load/prober.ts', import.meta.url), [
      String(port),
      site.cookies[0] ?? '',
      ...READS,
    ])
    try {
      const disk = await slowFlushes(child.pid, FLUSH_MS, join(scratch, 'flushes'))
      await ask(prober, 'begin')
      await site.radio.stream(packets, SECONDS)
      const { p99, longest } = await ask<Waits>(prober, 'end')
      const flushes = await disk.end()
      if (flushes < SECONDS) throw new Error(`only ${flushes} slow flushes in ${SECONDS} s`)
      const measured = `p99 ${p99.toFixed(0)} ms, longest ${longest.toFixed(0)} ms; ${(flushes / SECONDS).toFixed(1)} flushes/s`
      report(work, measured, `p99 ≤ ${P99_MS} ms`, p99 <= P99_MS)
    } finally {
      await stop(prober)
      await site.close()
    }
  }
}
