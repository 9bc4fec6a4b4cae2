import type { SessionStore } from '../app/context.ts'
import type { Log } from '../app/log.ts'

export async function redisSessions(_url: string, _log: Log): Promise<{ store: SessionStore; close(): Promise<void> }> {
  throw new Error('not built yet')
}
