import type { InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'
import { count } from '../../format.ts'
import { t } from '../../strings.ts'

type Hours = InferResponseType<typeof api.dashboard.$get, 200>['hours']

/** The sum of the hours that are over: comparable with the same hours a day earlier. */
export function completeHours(hours: Hours, what: 'messages' | 'packets'): number {
  return hours.slice(0, -1).reduce((sum, hour) => sum + hour[what], 0)
}

const HEIGHT = 24

/** A small line of values, oldest first, from 0 to the highest. */
export function Line({ values }: { values: readonly number[] }) {
  if (values.length < 2) return null
  const most = Math.max(1e-9, ...values)
  const step = 100 / (values.length - 1)
  const at = (value: number, index: number) =>
    `${(index * step).toFixed(1)},${(HEIGHT - 1 - (value / most) * (HEIGHT - 2)).toFixed(1)}`
  return (
    <svg class="line" viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <polyline points={values.map(at).join(' ')} />
    </svg>
  )
}

/** `▲ 12 % more than the day before`; nothing if there was nothing then. */
export function Change({ now, before }: { now: number; before: number }) {
  if (before === 0) return null
  const percent = Math.round((100 * (now - before)) / before)
  if (percent === 0) return <span>{t.dashboard.asBefore}</span>
  const isUp = percent > 0
  return (
    <span>
      <span aria-hidden="true">{isUp ? '▲' : '▼'}</span>{' '}
      {(isUp ? t.dashboard.more : t.dashboard.fewer)(count(Math.abs(percent)))}
    </span>
  )
}
