// Preloaded into each measured server: reports its processor time, and how long its main thread was held. The thread is
// watched only between "watch" and "read", because the timer costs each request some time.

/** Milliseconds of processor time of this thread. */
const own = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

let timer: NodeJS.Timeout | undefined
let hold = 0
let last = 0

/** Between two turns of a timer the thread computed without one: at most a millisecond more than the longest stretch. */
function look(): void {
  const now = own()
  hold = Math.max(hold, now - last)
  last = now
}

process.on('message', (request) => {
  switch (request) {
    case 'cpu': {
      // Of all threads, including those that have ended.
      const { user, system } = process.cpuUsage()
      process.send?.({ answer: user + system })
      return
    }
    case 'watch':
      hold = 0
      last = own()
      timer = setInterval(look, 1)
      process.send?.({ answer: 0 })
      return
    case 'read':
      look()
      clearInterval(timer)
      process.send?.({ answer: hold })
      return
    default:
  }
})
