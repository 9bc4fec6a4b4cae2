import { api, ask } from '../../api.ts'
import type { ShownRule } from './rule.ts'

/** The nodes for which a rule is muted now. */
export function quietNodes({ rule }: ShownRule) {
  return rule.silencedNodes.filter(({ until }) => until > Date.now())
}

export type RuleChanges = Partial<
  Pick<ShownRule['rule'], 'enabled' | 'destinations' | 'silencedUntil' | 'silencedNodes'>
>

/** Changes how a rule notifies, not what it watches. Throws `ApiError`. */
export async function changeRule({ id, rule, revision }: ShownRule, changes: RuleChanges): Promise<void> {
  const json = Object.assign({ ...rule }, changes)
  const headers = { 'If-Match': `"${revision}"` }
  await ask(api.alerts.rules[':id'].$put({ param: { id: String(id) }, json }, { headers }))
}
