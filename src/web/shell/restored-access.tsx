import { api, ask } from '../api.ts'
import { useLoad } from '../state/load.ts'
import { lazyPage } from '../parts/list/lazy-page.tsx'

const Decision = lazyPage(async () => (await import('./restored-access-decision.tsx')).Decision)

/** Shows access that the latest restore gave back to users and tokens, until an administrator decides about it. */
export function RestoredAccessNotice() {
  const { data, reload } = useLoad(() => ask(api.system.restore['restored-access'].$get()), [])
  const list = data.value
  return list === null || list.backup === null ? null : (
    <Decision backup={list.backup} restoredAccess={list.restoredAccess} reload={reload} />
  )
}
