import { type AppRequest, type AppSender, recordAppRequest } from '../../../app/mesh/sending/app-packets.ts'

type Rate = { readonly burst: number; readonly oneMoreMs: number }

/** Entries of a port: anybody who reaches it can cause them. */
const USUAL: Rate = { burst: 30, oneMoreMs: 60_000 }
/** Those of what the radio gets: an app writes a whole configuration as 40 messages. */
const PASSED: Rate = { burst: 80, oneMoreMs: 60_000 }
/** What changes nothing has one entry of each address in this time. */
const HARMLESS_MS = 3_600_000
const MAX_KNOWN = 256

/** Records what apps ask of a radio. */
export type RequestRecords = {
  /**
   * Records a request; one too many is counted in the next entry instead. Returns whether it is recorded: what is not
   * must not reach the radio.
   */
  write(sender: AppSender, request: Pick<AppRequest, 'request' | 'outcome' | 'reason'>): Promise<boolean>
}

/** Bounds the audit log. */
export function createRequestRecords(about: () => Pick<AppRequest, 'radio' | 'port'>): RequestRecords {
  const usual = createBucket(USUAL)
  const passed = createBucket(PASSED)
  /** When the last harmless request of an address was recorded. */
  const harmless = new Map<string, number>()
  let unrecorded = 0
  const admit = (address: string, outcome: AppRequest['outcome'], now: number): boolean => {
    if (outcome === 'passed') return passed.take(now)
    if (outcome === 'refused') return usual.take(now)
    const key = `${outcome} ${address}`
    const before = harmless.get(key)
    if (before !== undefined && now >= before && now - before < HARMLESS_MS) return false
    if (!usual.take(now)) return false
    harmless.delete(key)
    harmless.set(key, now)
    const [oldest] = harmless.keys()
    if (harmless.size > MAX_KNOWN && oldest !== undefined) harmless.delete(oldest)
    return true
  }
  return {
    async write(sender, request) {
      if (!admit(sender.address, request.outcome, sender.now())) {
        unrecorded += 1
        return false
      }
      const missed = unrecorded
      unrecorded = 0
      await recordAppRequest(sender, { ...about(), ...request, ...(missed === 0 ? {} : { unrecorded: missed }) })
      return true
    },
  }
}

function createBucket({ burst, oneMoreMs }: Rate) {
  let left = burst
  let filledAt = 0
  return {
    take(now: number): boolean {
      if (now < filledAt) filledAt = now
      const more = Math.floor((now - filledAt) / oneMoreMs)
      left = Math.min(burst, left + more)
      filledAt = left === burst ? now : filledAt + more * oneMoreMs
      if (left === 0) return false
      left -= 1
      return true
    },
  }
}
