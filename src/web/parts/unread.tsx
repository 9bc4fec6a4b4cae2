import { t } from '../strings.ts'

const MOST = 99

/** The number of new ones; nothing if there are none. */
export function Unread({ count, what = t.messages.unread }: { count: number; what?: string }) {
  if (count === 0) return null
  return (
    <b class="unread">
      {count > MOST ? `${MOST}+` : count}
      <span class="sr-only"> {what}</span>
    </b>
  )
}
