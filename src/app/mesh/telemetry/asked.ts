import * as z from 'zod'
import { DAY_MS } from '../../../shared/time.ts'
import { integerQuery, timeQuery } from '../../http/validate.ts'
import { nodeNumSchema } from '../nodes/nodes.ts'

/** The query parameters of a series, and of the list of metrics. */
export const telemetryFields = {
  nodeId: nodeNumSchema.optional().describe('Node number or !hex'),
  metric: z
    .string()
    .regex(/^[A-Za-z][\w.]{0,99}$/, 'a metric such as deviceMetrics.voltage')
    .optional()
    .describe('Without it: the list of metrics, of the node or of all nodes'),
  from: timeQuery.optional().describe('Inclusive; default: a day before `to`'),
  to: timeQuery.optional().describe('Inclusive; default: now'),
  points: integerQuery(10, 5000).default(2000).describe('Maximum number of points'),
}

type Given = { readonly from?: number | undefined; readonly to?: number | undefined }

/** False if the range ends before it begins. */
export function isRange({ from, to }: Given): boolean {
  return from === undefined || to === undefined || from <= to
}

/** The range with its defaults. */
export function rangeAsked(given: Given, now: number): { from: number; to: number } {
  const to = given.to ?? Math.max(now, given.from ?? 0)
  return { from: given.from ?? Math.max(0, to - DAY_MS), to }
}
