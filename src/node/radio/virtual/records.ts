import { type AppRequest, type AppSender, recordAppRequest } from '../../../app/mesh/sending/app-packets.ts'

/** Requests that may be recorded at once, and how often one more: an app writes a whole configuration as 40 messages. */
const BURST = 80
const ONE_MORE_MS = 2000

/** Records what apps ask of a radio. */
export type RequestRecords = {
  /** Whether one more request may be recorded; false counts it as unrecorded. */
  admit(now: number): boolean
  /** Records an admitted request. */
  write(sender: AppSender, request: Pick<AppRequest, 'request' | 'outcome' | 'reason'>): Promise<void>
}

/** Bounds the audit log: what exceeds the rate is refused and only counted. */
export function createRequestRecords(about: () => Pick<AppRequest, 'radio' | 'port'>): RequestRecords {
  let left = BURST
  let filledAt = 0
  let unrecorded = 0
  return {
    admit(now) {
      if (now < filledAt) filledAt = now
      const more = Math.floor((now - filledAt) / ONE_MORE_MS)
      left = Math.min(BURST, left + more)
      filledAt = left === BURST ? now : filledAt + more * ONE_MORE_MS
      if (left === 0) {
        unrecorded += 1
        return false
      }
      left -= 1
      return true
    },
    async write(sender, request) {
      const missed = unrecorded
      unrecorded = 0
      await recordAppRequest(sender, { ...about(), ...request, ...(missed === 0 ? {} : { unrecorded: missed }) })
    },
  }
}
