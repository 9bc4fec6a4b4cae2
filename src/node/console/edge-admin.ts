import { writeFileSync } from 'node:fs'
import { isSQLWrapper } from 'drizzle-orm'
import { SQLiteSyncDialect } from 'drizzle-orm/sqlite-core'
import { randomPassword } from '../../app/accounts/passwords/passwords.ts'
import { AppError } from '../../app/http/errors.ts'
import { usernameSchema } from '../../app/accounts/users/users.ts'
import { statementsForRecovery } from '../../app/accounts/recovery/administrator.ts'
import type { Statement } from '../../db/store.ts'
import { openDatabase } from '../database.ts'
import { nativePasswordHasher } from '../passwords.ts'

export const EDGE_ADMIN_USAGE = `  edge-admin <username> [file]
                              print a command that makes this user an administrator of a service on the edge, and a
                              temporary password; second factors, sessions and API tokens of the user end. With a
                              file, the SQL is written there
`

/**
 * Returns the command to run and the account's new password; writes the file if one is requested. Needs no database.
 * Throws `invalid_request`.
 */
export async function explainRecovery(username: string, file: string | null): Promise<string> {
  if (!usernameSchema.safeParse(username).success) {
    throw new AppError('invalid_request', 'A username is 1–64 letters, digits and . _ - @')
  }
  const password = randomPassword()
  const statements = await writeStatements(username, await nativePasswordHasher().hash(password))
  if (file !== null) keep(file, statements.map((statement) => `${statement};\n`).join(''))
  const source = file === null ? `--command ${quote(statements.join('; '))}` : `--file ${quote(file)}`
  return `Run this in the folder of wrangler.toml:

npx wrangler d1 execute DB --remote ${source}

Then sign in as ${username} with the temporary password  ${password}

A user of OpenID Connect becomes an administrator and still signs in by OpenID Connect; the password is for a local user.
`
}

async function writeStatements(username: string, passwordHash: string): Promise<string[]> {
  // Only builds statements; nothing is stored in it.
  const store = openDatabase(':memory:')
  try {
    return statementsForRecovery(store, { username, passwordHash }).map(textOf)
  } finally {
    store.close()
  }
}

const dialect = new SQLiteSyncDialect()

/** The statement on one line, with its values. */
function textOf(statement: Statement): string {
  if (!isSQLWrapper(statement)) throw new Error('a statement that cannot be written out')
  const { sql } = dialect.sqlToQuery(statement.getSQL().inlineParams())
  return sql.replaceAll(/\s+/g, ' ')
}

/** Quoted as one word for a POSIX shell. */
function quote(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

function keep(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw new AppError(
      'invalid_request',
      `${file} cannot be created: ${error instanceof Error ? error.message : 'unknown'}`,
    )
  }
}
