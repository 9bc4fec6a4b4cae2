import { sql } from 'drizzle-orm'
import type { Store } from '../../db/store.ts'
import type { Ports } from '../base/context.ts'
import { sha256Hex } from '../base/crypto.ts'
import { audit, SYSTEM } from './audit.ts'
import { readChain } from './chain.ts'
import { verifyChain } from './verify.ts'

/** The triggers that refuse changes of the log and its chain; see the migrations. */
const TRIGGERS = [
  'audit_chain_begins_empty',
  'audit_chain_grows',
  'audit_chain_stays',
  'audit_log_counts_up',
  'audit_log_no_delete',
  'audit_log_no_replace',
  'audit_log_no_update',
]
/**
 * SHA-256 of all triggers on both tables, by name, without spaces and quotes: one that does nothing, or one that leaves
 * entries out, may have the name of another.
 */
const TRIGGERS_HASH = '6fe9f29899dcb4dbac1726a84943bc496ead2cb7605d3ef9c4e458291f9bc861'
/** The number of last entries that are checked at each start: some milliseconds. `audit verify` checks all. */
const HEAD = 500

/** What is wrong with the end of the log or its protection; null: nothing. */
export async function findHeadDamage(store: Store): Promise<string | null> {
  const found = await store.db.all<{ name: string; sql: string }>(
    sql`select name, sql from sqlite_master where type = 'trigger' and tbl_name in ('audit_log', 'audit_chain')
      order by name`,
  )
  const names = new Set(found.map(({ name }) => name))
  const missing = TRIGGERS.filter((name) => !names.has(name))
  if (missing.length > 0) return `the triggers ${missing.join(', ')} are missing, so entries could be changed`
  if (sha256Hex(found.map((trigger) => trigger.sql.replaceAll(/[\s`"]/g, '')).join('\n')) !== TRIGGERS_HASH) {
    return 'its triggers are not those of this version, so entries could be changed or left out'
  }
  const { trimmedId, sealedId } = await readChain(store)
  const { broken } = await verifyChain(store, { after: Math.max(trimmedId, sealedId - HEAD), limit: 2 * HEAD })
  return broken === null ? null : `entry ${broken.id} is ${broken.reason.replace('_', ' ')}`
}

/**
 * Checks the end of the log at a start. The service starts in any case; damage is logged, and recorded once: every page
 * shows it to administrators until one of them confirms it.
 */
export async function checkAuditHead(ports: Pick<Ports, 'store' | 'log' | 'now'>): Promise<void> {
  const { store, log } = ports
  const damage = await findHeadDamage(store)
  if (damage === null) return
  log.error(`THE AUDIT LOG IS DAMAGED: ${damage}; run "audit verify", and compare it with a backup or an export`)
  const details = { damage }
  const isKnown = sql`exists (select 1 from audit_log where action = 'audit_damaged' and details = ${JSON.stringify(details)})`
  const context = { ...ports, ip: null, requestId: null, viewer: null }
  await store.atomic([audit(context, 'audit_damaged', details, { actor: SYSTEM, onlyIf: sql`not ${isKnown}` })])
}
