import { t } from '../strings.ts'

const MAX_SHOWN = 99

/** The number of new items; nothing if there are none. */
export function Unread({ count, what = t.common.unread }: { count: number; what?: string }) {
  if (count === 0) return null
  return (
    <b class="unread">
      {count > MAX_SHOWN ? `${MAX_SHOWN}+` : count}
      <span class="sr-only"> {what}</span>
    </b>
  )
}
