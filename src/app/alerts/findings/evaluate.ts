import type { Store } from '../../../db/store.ts'
import type { AlertState } from '../../../shared/alerts/alert-kinds.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { findOwner } from '../../accounts/access/viewer.ts'
import type { Ports } from '../../base/context.ts'
import type { Pause } from '../../base/pacing/slices.ts'
import { kindOf } from '../kinds/kinds.ts'
import { noteLogged } from './logged.ts'
import { forgetPending, newStep, resolve } from './occur.ts'
import { readOpen, readOpenPage, rulesWithOpen } from './open.ts'
import { readWorld } from '../world/read-world.ts'
import { noteEvaluated } from '../rules/watched-nodes.ts'
import { listWatching, prepareRules, type WatchingRule } from '../rules/watch-list.ts'
import { run, settle } from './settle.ts'
import { tellOwner } from '../../mesh/live/tell-owner.ts'

type Needs = Pick<Ports, 'store' | 'log' | 'now' | 'config' | 'providers' | 'radio' | 'events' | 'clockWatch'> & {
  /** When the service began to watch; null: it never stops. */
  readonly startedAt: number | null
}

/**
 * Evaluates the rules about states: silence, measurements, positions, keys, links, backups, and accounts in the audit
 * log. Runs each minute. Does nothing while the clock is not trusted.
 */
export async function evaluateRules(needs: Needs, pause: Pause): Promise<void> {
  const { store, clockWatch } = needs
  if (clockWatch !== null && clockWatch.state().state !== 'confirmed') return
  const now = needs.now()
  await prepareRules(store)
  const withOpen = await rulesWithOpen(store)
  const rules = await listLive(needs)
  if (rules.length === 0 && withOpen.size === 0) return
  const wanted = rules.flatMap(({ rule }) => kindOf(rule.kind).state?.needs(rule) ?? [])
  const read = await readWorld({ ...needs, now }, wanted, pause)
  if (read === null) return
  await run(store, read.marks)
  // A run that must stop early starts with other rules than the previous one.
  const first = rules.length === 0 ? 0 : Math.floor(now / MINUTE_MS) % rules.length
  for (const watching of [...rules.slice(first), ...rules.slice(0, first)]) {
    const open = withOpen.delete(watching.id) ? await readOpen(store, watching.id, pause) : []
    if (open === null) return
    const { parts, hasChanged } = await settle(store, watching, { world: read.world, open })
    for (const statements of parts) {
      await run(store, statements)
      if (!(await pause())) return
    }
    if (hasChanged) tellOwner(needs, watching.ownerId)
    if (!(await pause())) return
  }
  for (const ruleId of withOpen) if (!(await endSilently(store, { ruleId, now, pause }))) return
  await noteLogged(needs, rules, now)
  await noteEvaluated(store, now)
}

/** Alerts of deleted or disabled rules, and of owners who have lost the permission, end silently. */
async function endSilently(
  store: Store,
  { ruleId, now, pause }: { readonly ruleId: number; readonly now: number; readonly pause: Pause },
): Promise<boolean> {
  for (;;) {
    const left = await readOpenPage(store, ruleId)
    const ids = (wanted: AlertState) => left.flatMap(({ id, state }) => (state === wanted ? [id] : []))
    await run(store, [
      ...forgetPending(store, ids('pending')),
      ...resolve(store, { ids: ids('firing'), now, step: newStep() }),
    ])
    if (!(await pause())) return false
    if (left.length === 0) return true
  }
}

/** Rules whose owners can sign in. */
async function listLive(needs: Needs): Promise<WatchingRule[]> {
  const rules = await listWatching(needs.store)
  const live = new Map<number, boolean>()
  for (const { ownerId } of rules) {
    if (!live.has(ownerId)) live.set(ownerId, (await findOwner(needs, ownerId)) !== null)
  }
  return rules.filter(({ ownerId }) => live.get(ownerId) === true)
}
