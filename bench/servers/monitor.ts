// Preloaded into each measured server: answers what it used of the processor, and how long its event loop was held. The
// loop is watched only between "watch" and "read", for the timer costs each request some time.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delay = monitorEventLoopDelay({ resolution: 1 })

process.on('message', (request) => {
  switch (request) {
    case 'cpu': {
      // Of all threads, those among them that have ended.
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
