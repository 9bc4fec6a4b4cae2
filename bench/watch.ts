/** The longest processor time of this thread without a turn for others, and all of the process, in milliseconds. */
export async function watch(work: () => Promise<unknown>): Promise<{ hold: number; cpu: number }> {
  let hold = 0
  const own = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  let last = own()
  let turn: NodeJS.Immediate
  const look = () => {
    hold = Math.max(hold, own() - last)
    last = own()
    turn = setImmediate(look)
  }
  turn = setImmediate(look)
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  clearImmediate(turn)
  return { hold, cpu: (user + system) / 1000 }
}
