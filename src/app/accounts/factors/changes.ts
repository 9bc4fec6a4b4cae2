import type { SQL } from 'drizzle-orm'
import type { Statement } from '../../../db/store.ts'
import { audit } from '../../audit/audit.ts'
import type { AuditAction } from '../../../shared/access/audit-actions.ts'

/** What can happen to the second factors of a user. */
type FactorChange = Extract<
  AuditAction,
  'second_factor_added' | 'second_factor_removed' | 'second_factor_reset' | 'recovery_codes_created'
>

/**
 * The statements that follow every change of second factors and recovery codes in its atomic step. Without `onlyIf`
 * they take effect if the previous statement changed a row.
 */
export function factorChanged(
  ctx: Parameters<typeof audit>[0],
  change: FactorChange,
  details: Readonly<Record<string, unknown>>,
  onlyIf?: SQL,
): [Statement] {
  return [audit(ctx, change, details, onlyIf === undefined ? { onlyIfChanged: true } : { onlyIf })]
}
