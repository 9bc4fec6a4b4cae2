import * as z from 'zod'
import { timeField } from '../http/fields.ts'

export const auditEntrySchema = z
  .object({
    id: z.int(),
    timestamp: timeField,
    userId: z.int().nullable(),
    username: z.string().nullable(),
    action: z.string(),
    resource: z.string(),
    details: z.record(z.string(), z.unknown()),
    ip: z.string().nullable(),
    requestId: z.string().nullable(),
    hash: z
      .string()
      .nullable()
      .describe('Seals the entry and all before it; null until it is sealed, a few seconds after it was written'),
    previousHash: z
      .string()
      .nullable()
      .describe('The hash of the previous entry: 64 zeros for the first one; null until that one is sealed'),
  })
  .meta({ id: 'AuditEntry', description: 'Who changed what, when and from where' })

export type AuditEntry = z.infer<typeof auditEntrySchema>

/** An entry as it is stored: its details are JSON text. */
export type AuditRow = Omit<AuditEntry, 'details'> & { readonly details: string }

export type StoredRow = Omit<AuditRow, 'previousHash'>
