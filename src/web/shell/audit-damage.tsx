import { api, ask } from '../api.ts'
import { useLoad } from '../state/load.ts'
import { lazyPage } from '../parts/list/lazy-page.tsx'

const Advice = lazyPage(async () => (await import('./audit-damage-advice.tsx')).Advice)

/** Damage of the audit log that a start has found, until an administrator confirms it. */
export function AuditDamageNotice() {
  const { data, reload } = useLoad(() => ask(api.audit.damage.$get()), [])
  const damages = data.value?.damages ?? []
  return damages.length === 0 ? null : <Advice damages={damages} reload={reload} />
}
