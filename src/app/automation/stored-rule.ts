import { ownedBy } from '../base/owned.ts'
import type { automations } from '../../db/schema.ts'
import type { Db } from '../../db/store.ts'
import type { Ports } from '../base/context.ts'
import { isUnderstood, type Rule, ruleSchema } from './rules.ts'

type Row = typeof automations.$inferSelect

/** An automation as the engine uses it. */
export type Automation = Pick<
  Row,
  'id' | 'revision' | 'anchorAt' | 'lastFiredAt' | 'createdAt' | 'updatedAt' | 'updatedBy'
> & {
  readonly rule: Rule
}

/** An automation whose rule this version cannot read: a newer version wrote it, or it is damaged. */
export type Unreadable = Pick<Row, 'id' | 'revision' | 'name' | 'createdAt' | 'updatedAt' | 'updatedBy'> & {
  readonly kind: string
}

/** The problems already logged, so that each is logged once. */
const loggedProblems = ownedBy((_db: Db) => new Set<string>())
const MAX_LOGGED = 1000

/** The rule of a row. If it cannot be read, null and a line in the log. */
export function readAutomation({ store, log }: Pick<Ports, 'store' | 'log'>, row: Row): Automation | null {
  const { id, name, revision, anchorAt, lastFiredAt, createdAt, updatedAt, updatedBy } = row
  const rule = parseRule(row.rule)
  if (rule !== null) return { id, revision, anchorAt, lastFiredAt, createdAt, updatedAt, updatedBy, rule }
  const known = loggedProblems(store.db)
  const version = `${id} ${revision}`
  if (!known.has(version) && known.size < MAX_LOGGED) {
    known.add(version)
    log.error('An automation cannot be read and does not run', { automation: id, name })
  }
  return null
}

/** The fields of a row besides its rule. */
export function toUnreadable({ id, revision, name, kind, createdAt, updatedAt, updatedBy }: Row): Unreadable {
  return { id, revision, name, kind, createdAt, updatedAt, updatedBy }
}

function parseRule(text: string): Rule | null {
  try {
    const rule = ruleSchema.safeParse(JSON.parse(text)).data
    return rule !== undefined && isUnderstood(rule) ? rule : null
  } catch {
    // Not JSON.
    return null
  }
}
