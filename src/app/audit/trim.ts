import { sql } from 'drizzle-orm'
import { auditChain } from '../../db/schema.ts'
import { audit, type AuditContext } from './audit.ts'
import { deleteTrimmed, readChain } from './chain.ts'

/** What is trimmed: all entries from the first one that is left up to `lastId`. Each was sealed. */
export type Trimmed = {
  readonly firstId: number
  readonly lastId: number
  readonly entries: number
  readonly previousHash: string
  readonly lastHash: string
}

/**
 * Records that entries are trimmed, from when on nothing but this entry tells of them, and deletes them in slices. Make
 * sure before that they are kept elsewhere. Throws when somebody else has trimmed meanwhile.
 */
export async function trimAudit(ctx: AuditContext, trimmed: Trimmed, file: string): Promise<void> {
  const { store } = ctx
  const { lastId, lastHash } = trimmed
  const isOurTurn = sql`(select ${auditChain.trimmedId} from ${auditChain}) = ${trimmed.firstId - 1}`
  await store.atomic([
    audit(ctx, 'audit_trimmed', { ...trimmed, file }, { onlyIf: isOurTurn }),
    store.db.update(auditChain).set({ trimmedId: lastId, trimmedHash: lastHash }).where(isOurTurn),
  ])
  if ((await readChain(store)).trimmedId !== lastId) throw new Error('the audit log was trimmed by somebody else')
  await deleteTrimmed(store)
}
