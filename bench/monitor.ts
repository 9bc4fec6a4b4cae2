// Preloaded into the measured service: tells, when asked, how long its event loop was held since it was last asked.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()

process.on('message', () => {
  process.send?.({
    maxMs: delay.max / 1e6,
    p99Ms: delay.percentile(99) / 1e6,
    rssMb: process.memoryUsage().rss / 2 ** 20,
  })
  delay.reset()
})
