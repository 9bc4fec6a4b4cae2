import { sealAudit } from '../app/audit/chain.ts'
import { type ChainPart, verifyChain } from '../app/audit/verify.ts'
import type { Ctx } from '../app/context.ts'

export const AUDIT_USAGE = `  audit verify                whether the audit log is as it was written, and until where
`

/** Runs on a database; answers the exit code: 0 whole or done, 1 broken or refused. */
type AuditCommand = (ctx: Ctx) => Promise<number>

/** What the arguments after `audit` ask for; null when they are not understood. */
export function readAuditCommand(args: readonly string[]): AuditCommand | null {
  const [name, ...rest] = args
  if (name === 'verify' && rest.length === 0) return verify
  return null
}

async function verify({ store }: Ctx): Promise<number> {
  await sealAudit(store)
  const found = await verifyChain(store, { after: 0, limit: Number.MAX_SAFE_INTEGER })
  process.stdout.write(
    describeChain(found)
      .map((line) => `${line}\n`)
      .join(''),
  )
  return found.broken === null ? 0 : 1
}

const BREAKS = {
  changed: 'is not as it was sealed',
  missing: 'is missing',
  unsealed: 'has lost its seal',
  trim_unrecorded: 'was the last one trimmed, but no entry tells of it',
} as const

function describeChain({ entries, until, unsealed, broken, trimmed }: ChainPart): string[] {
  const proven = until === null ? 'no entry' : `entry ${until.id} of ${new Date(until.timestamp).toISOString()}`
  return [
    broken === null
      ? `Whole: ${entries} entries, until ${proven}`
      : `Broken: entry ${broken.id} ${BREAKS[broken.reason]}; whole until ${proven}`,
    ...(until === null ? [] : [`Hash of entry ${until.id}: ${until.hash}`]),
    ...(unsealed === 0 ? [] : [`Not sealed yet: ${unsealed} newer entries`]),
    ...(trimmed === null ? [] : [`Trimmed: entries up to ${trimmed.id}, of hash ${trimmed.hash}`]),
  ]
}
