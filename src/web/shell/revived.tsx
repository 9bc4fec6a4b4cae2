import { api, ask } from '../api.ts'
import { useLoad } from '../state/load.ts'
import { later } from '../parts/list/later.tsx'

const Decision = later(async () => (await import('./revived-decision.tsx')).Decision)

/** Access that the latest restore gave back to users and tokens, until an administrator decides about it. */
export function RevivedNotice() {
  const { data, reload } = useLoad(() => ask(api.system.restore.revived.$get()), [])
  const list = data.value
  return list === null || list.backup === null ? null : (
    <Decision backup={list.backup} revived={list.revived} reload={reload} />
  )
}
