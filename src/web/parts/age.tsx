import { signal } from '@preact/signals'
import { age, dateTime } from '../format.ts'
import { t } from '../strings.ts'

/** The current time for ages; updates itself. */
export const now = signal(Date.now())

const TICK_MS = 5000

export function keepTime(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now()
  }, TICK_MS)
}

/** How long ago, with the exact time as a tooltip. */
export function Age({ at, short = false }: { at: number | null; short?: boolean }) {
  if (at === null) return <span class="faint">{short ? t.common.none : t.common.never}</span>
  const text = age(at, now.value)
  return (
    <time dateTime={new Date(at).toISOString()} title={dateTime(at)}>
      {short ? text : t.common.ago(text)}
    </time>
  )
}

/** The age, followed by the exact time, also for users who cannot point at it. */
export function ExactAge({ at }: { at: number | null }) {
  if (at === null) return <Age at={at} />
  return (
    <>
      <Age at={at} /> <span class="faint exact">{dateTime(at)}</span>
    </>
  )
}

/** A future time, or one that must be exact. */
export function At({ at }: { at: number }) {
  return <time dateTime={new Date(at).toISOString()}>{dateTime(at)}</time>
}
