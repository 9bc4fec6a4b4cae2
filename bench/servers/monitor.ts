// Preloaded into each measured server: reports its processor time, and how long its event loop was blocked. The loop is
// watched only between "watch" and "read", because the timer costs each request some time.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })

process.on('message', (request) => {
  switch (request) {
    case 'cpu': {
      // Of all threads, including those that have ended.
      const { user, system } = process.cpuUsage()
      process.send?.({ answer: user + system })
      return
    }
    case 'watch':
      delay.reset()
      delay.enable()
      process.send?.({ answer: 0 })
      return
    case 'read':
      delay.disable()
      process.send?.({ answer: delay.max / 1e6 })
      return
    default:
  }
})
