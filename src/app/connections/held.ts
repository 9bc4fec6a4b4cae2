import { isNotNull } from 'drizzle-orm'
import { connections } from '../../db/schema.ts'
import type { Statement, Store } from '../../db/store.ts'

/** Uses all connections that a restore brought back, from the next start on. */
export function releaseConnections({ db }: Store): Statement {
  return db.update(connections).set({ heldAt: null }).where(isNotNull(connections.heldAt))
}
