import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that systems assign for port 0. */
const [FIRST, LAST] = [20_000, 32_000]

/**
 * A loopback port where nothing listens. It stays free: no other test gets it for port 0, and no connection starts
 * there, not even one to itself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
