import { type AppRequest, type AppSender, recordAppRequest } from '../../../app/mesh/sending/app-packets.ts'

type Rate = { readonly burst: number; readonly oneMoreMs: number }

/** Requests that are recorded from one address: an app writes a whole configuration as 40 messages. */
const OF_ONE: Rate = { burst: 80, oneMoreMs: 2000 }
const OF_ALL: Rate = { burst: 400, oneMoreMs: 500 }
const MAX_ADDRESSES = 256

/** Records what apps ask of a radio. */
export type RequestRecords = {
  /** Whether one more request from this address may be recorded; false counts it as unrecorded. */
  admit(address: string, now: number): boolean
  /** Records an admitted request. */
  write(sender: AppSender, request: Pick<AppRequest, 'request' | 'outcome' | 'reason'>): Promise<void>
}

/** Bounds the audit log: what exceeds the rate is refused and only counted. */
export function createRequestRecords(about: () => Pick<AppRequest, 'radio' | 'port'>): RequestRecords {
  const ofAll = createBucket(OF_ALL)
  const byAddress = new Map<string, ReturnType<typeof createBucket>>()
  let unrecorded = 0
  const bucketOf = (address: string) => {
    const bucket = byAddress.get(address) ?? createBucket(OF_ONE)
    byAddress.delete(address)
    byAddress.set(address, bucket)
    const [oldest] = byAddress.keys()
    if (byAddress.size > MAX_ADDRESSES && oldest !== undefined) byAddress.delete(oldest)
    return bucket
  }
  return {
    admit(address, now) {
      const isAdmitted = bucketOf(address).take(now) && ofAll.take(now)
      if (!isAdmitted) unrecorded += 1
      return isAdmitted
    },
    async write(sender, request) {
      const missed = unrecorded
      unrecorded = 0
      await recordAppRequest(sender, { ...about(), ...request, ...(missed === 0 ? {} : { unrecorded: missed }) })
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
