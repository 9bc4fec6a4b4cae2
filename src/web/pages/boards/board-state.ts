import type { InferResponseType } from 'hono/client'
import { api } from '../../api.ts'
import { chartMetric } from '../../parts/charts/series.ts'

const one = api.boards[':id']
export type Board = InferResponseType<(typeof one)['$get'], 200>['board']
export type Chart = Board['charts'][number]

/** What the service stores of a board. */
export function contentOf({ name, sharing, readers, charts }: Board) {
  return { name, sharing: sharing ?? 'nobody', readers, charts: charts.map(storedChart) }
}

function storedChart({ title, metrics, nodes }: Chart) {
  return { title, metrics, nodes: nodes.map(({ nodeNum }) => nodeNum) }
}

/** Its title, else its measurements. */
export function titleOf({ title, metrics }: Chart): string {
  return title === '' ? metrics.map((metric) => chartMetric(metric, metrics)).join(', ') : title
}

/** The list with one of its elements a place earlier or later. */
export function moved<T>(all: readonly T[], index: number, by: -1 | 1): readonly T[] {
  const next = [...all]
  const [one] = next.splice(index, 1)
  if (one !== undefined) next.splice(index + by, 0, one)
  return next
}
