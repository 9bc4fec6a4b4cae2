import { sql, type SQL } from 'drizzle-orm'
import * as z from 'zod'
import { users } from '../../../db/schema.ts'
import { MAX_NUMBER } from '../../../meshtastic/channel-identity.ts'
import { MAX_SCOPE_CHANNELS, NEW_SCOPE, type Scope, WHOLE_SCOPE } from '../../../shared/access/scope.ts'
import { grantSchema } from './permissions.ts'

const channelNumbers = z
  .array(z.int().min(0).max(MAX_NUMBER))
  .max(MAX_SCOPE_CHANNELS)
  .transform((numbers) => [...new Set(numbers)].toSorted((a, b) => a - b))
  .readonly()

export const scopeSchema = z
  .strictObject({
    channels: z
      .union([
        z.literal('all'),
        z
          .strictObject({ read: channelNumbers, write: channelNumbers })
          .refine(({ read, write }) => write.every((channel) => read.includes(channel)), {
            path: ['write'],
            message: 'write needs read',
          }),
      ])
      .describe('`all`, or channel numbers as in GET /api/channels'),
    direct: grantSchema.describe('Direct messages between any nodes, and everything else that was sent to one node'),
  })
  .meta({ id: 'Scope', description: 'Which contents of the mesh a user sees; it narrows the permissions' })

/** The columns of `users` that hold a scope. */
export const scopeColumns = { channels: users.channels, directRead: users.directRead, directWrite: users.directWrite }

type ScopeRow = {
  readonly isAdmin: boolean
  readonly channels: { readonly read: number[]; readonly write: number[] } | null
  readonly directRead: boolean
  readonly directWrite: boolean
}

/** The scope of an administrator is everything, whatever the row contains. */
export function scopeOf({ isAdmin, channels, directRead, directWrite }: ScopeRow): Scope {
  if (isAdmin) return WHOLE_SCOPE
  return { channels: channels ?? 'all', direct: { read: directRead, write: directWrite } }
}

/** The row that stores a scope. */
export function scopeRow({ channels, direct }: Scope) {
  return {
    channels: channels === 'all' ? null : { read: [...channels.read], write: [...channels.write] },
    directRead: direct.read,
    directWrite: direct.write,
  }
}

/** The row of a new regular user. */
export const NEW_SCOPE_ROW = scopeRow(NEW_SCOPE)

/** Whether the row of `users` in a query has another scope. */
export function holdsOtherScope(scope: Scope): SQL {
  const { channels, directRead, directWrite } = scopeRow(scope)
  return sql`(${users.channels} is not ${channels === null ? null : JSON.stringify(channels)}
    or ${users.directRead} <> ${directRead ? 1 : 0} or ${users.directWrite} <> ${directWrite ? 1 : 0})`
}
