// Preloaded into the measured service: tells how long its event loop was held between "watch" and "read". It counts only
// then, for its timer costs each request some time.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })

process.on('message', (request) => {
  if (request === 'watch') {
    delay.reset()
    delay.enable()
    return
  }
  delay.disable()
  process.send?.({ maxMs: delay.max / 1e6 })
})
