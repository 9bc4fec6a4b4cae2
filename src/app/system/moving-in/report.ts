import * as z from 'zod'
import type { Store } from '../../../db/store.ts'
import { IMPORTED_NAMES, LOSS_NAMES, USER_OUTCOME_NAMES } from '../../../shared/moving-in.ts'
import { timeField } from '../../http/fields.ts'
import { keepState, readState } from '../status/state.ts'

/** Names in one part of a report. Further ones are only counted. */
export const MAX_NAMES = 100
/** Users with their rights in a report. */
export const MAX_USERS = 200

export const importReportSchema = z
  .object({
    file: z.string().describe('Name of the file, without its directory'),
    program: z.literal('meshmonitor'),
    migration: z.int().describe('The last migration of the program that the file has'),
    isDryRun: z.boolean(),
    startedAt: timeField,
    finishedAt: timeField,
    counts: z.array(
      z.object({
        what: z.enum(IMPORTED_NAMES),
        found: z.int().describe('Rows in the file'),
        added: z.int().describe('Rows written here; in a dry run those that would be tried'),
      }),
    ),
    losses: z.array(
      z.object({
        what: z.enum(LOSS_NAMES),
        n: z.int(),
        names: z.array(z.string()).describe('The first of them by name, or by kind'),
      }),
    ),
    users: z.array(
      z.object({
        username: z.string(),
        outcome: z.enum(USER_OUTCOME_NAMES),
        before: z.array(z.string()).describe('Rights in the file'),
        after: z.array(z.string()).describe('Rights here'),
      }),
    ),
    auditFile: z
      .object({ name: z.string(), sha256: z.string(), entries: z.int() })
      .nullable()
      .describe('The audit log of the file, kept beside the backups'),
  })
  .meta({ id: 'ImportReport', description: 'What an import from another program brought, and what it left out' })

export type ImportReport = z.infer<typeof importReportSchema>

/** The report of the latest import; null: there was none. */
export async function readImportReport(store: Store): Promise<ImportReport | null> {
  return readState(store, 'import', importReportSchema)
}

export async function keepImportReport(store: Store, report: ImportReport): Promise<void> {
  await keepState(store, 'import', report, report.finishedAt)
}
