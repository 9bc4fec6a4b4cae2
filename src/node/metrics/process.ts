import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type Family, single } from '../../app/system/metrics/exposition.ts'
import { systemClock } from '../clock.ts'

const NS = 1e9

/** Measures this process. The delay of the event loop covers the time since the previous call. */
export function createProcessMetrics(): () => readonly Family[] {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  return () => {
    const { rss, heapUsed } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    const started = Math.round(systemClock.now() / 1000 - process.uptime())
    const [p99, max] = [delay.percentile(99) / NS, delay.max / NS]
    delay.reset()
    return [
      single('process_resident_memory_bytes', 'gauge', 'Resident memory.', rss),
      single('process_cpu_seconds_total', 'counter', 'Processor time used.', (user + system) / 1e6),
      single('process_start_time_seconds', 'gauge', 'When the process started.', started),
      single('nodejs_heap_used_bytes', 'gauge', 'Memory of live JavaScript objects.', heapUsed),
      single(
        'nodejs_eventloop_delay_p99_seconds',
        'gauge',
        'Delay of timers since the last scrape, 99th percentile.',
        p99,
      ),
      single('nodejs_eventloop_delay_max_seconds', 'gauge', 'Longest delay of timers since the last scrape.', max),
    ]
  }
}
