import { readdir, readFile } from 'node:fs/promises'
import { getPriority, setPriority } from 'node:os'

/** As `nice` counts: a thirtieth of the event loop's share where both want the same core. */
const POOL_PRIORITY = 15
const TASKS = '/proc/self/task'

/**
 * Lets the event loop go before the threads of Node's pool, where bcrypt works for a quarter of a second at a time: on a
 * machine whose cores are all busy, an answer else waits for the end of their time slice. Linux alone has priorities of
 * threads (setpriority(2), "C library/kernel differences"), and Node 24 names its own.
 */
export async function lowerPoolPriority(): Promise<void> {
  if (process.platform !== 'linux') return
  // Reading makes the pool, if nobody has yet.
  for (const thread of await readdir(TASKS)) {
    const name = await readFile(`${TASKS}/${thread}/comm`, 'utf8')
    const tid = Number(thread)
    // Only the administrator of the machine may raise it again.
    if (name.trim() === 'libuv-worker' && getPriority(tid) < POOL_PRIORITY) setPriority(tid, POOL_PRIORITY)
  }
}
