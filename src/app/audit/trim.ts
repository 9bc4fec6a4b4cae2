import { sql } from 'drizzle-orm'
import { auditChain } from '../../db/schema.ts'
import { audit, type AuditContext } from './audit.ts'
import { deleteTrimmed, readChain } from './chain.ts'

/** The entries to trim: from the first existing one up to `lastId`. All of them were sealed. */
export type Trimmed = {
  readonly firstId: number
  readonly lastId: number
  readonly entries: number
  readonly previousHash: string
  readonly lastHash: string
}

/**
 * Records that entries are trimmed, and deletes them in slices; afterwards only this record mentions them. Make sure
 * beforehand that a copy exists elsewhere. Throws if another trim has happened meanwhile.
 */
export async function trimAudit(ctx: AuditContext, trimmed: Trimmed, file: string): Promise<void> {
  const { store } = ctx
  const { lastId, lastHash } = trimmed
  const isOurTurn = sql`(select ${auditChain.trimmedId} from ${auditChain}) = ${trimmed.firstId - 1}`
  await store.atomic([
    audit(ctx, 'audit_trimmed', { ...trimmed, file }, { onlyIf: isOurTurn }),
    store.db.update(auditChain).set({ trimmedId: lastId, trimmedHash: lastHash }).where(isOurTurn),
  ])
  if ((await readChain(store)).trimmedId !== lastId) throw new Error('the audit log was trimmed by another process')
  await deleteTrimmed(store)
}
