import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../../api.ts'
import { needTexts } from '../../../strings/mesh/needs.ts'
import { problemTexts } from '../../../strings/system/system.ts'
import { REMEDIES } from '../../system/remedies.ts'
import type { Need } from './need.ts'

type System = InferResponseType<typeof api.system.$get>

const OPEN_SYSTEM = ['/system', needTexts.openSystem] as const

/** What is wrong with the service itself, but its links. Only administrators may ask. Throws `ApiError`. */
export async function readServiceNeeds(): Promise<Need[]> {
  return needsOf(await ask(api.system.$get()))
}

function needsOf({ problems, backups }: System): Need[] {
  return problems
    .filter(({ code }) => code !== 'link_down' && code !== 'collector_failing')
    .map(({ code, severity, subject }) => {
      const [path, name] = REMEDIES[code] ?? OPEN_SYSTEM
      const details = code === 'backup_failed' ? [backups?.lastRun?.error ?? ''] : []
      const since = code === 'backup_failed' ? (backups?.lastRun?.at ?? null) : null
      return {
        key: `service ${code} ${subject}`,
        severity,
        text: problemTexts[code](subject ?? ''),
        since: code === 'backup_overdue' ? (backups?.lastSuccessAt ?? null) : since,
        details: details.filter((detail) => detail !== ''),
        remedy: { path, name },
      }
    })
}
