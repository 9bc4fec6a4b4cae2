import * as z from 'zod'
import {
  BOARD_SHARINGS,
  MAX_BOARD_CHARTS,
  MAX_BOARD_NAME,
  MAX_BOARD_READERS,
  MAX_CHART_LINES,
  MAX_CHART_METRICS,
  MAX_CHART_NODES,
  MAX_CHART_TITLE,
  MAX_CHART_UNITS,
} from '../../../shared/mesh/boards.ts'
import { MAX_USERNAME } from '../../../shared/limits.ts'
import { unitOf } from '../../../shared/mesh/metric-units.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'
import { nodeIdField, nodeNumField } from '../../http/fields.ts'

/** One line of at most `most` characters. */
const line = (most: number) =>
  z
    .string()
    .trim()
    .max(most)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'no control characters or lone surrogates')

const isUnique = (values: readonly unknown[]) => new Set(values).size === values.length

const metricsSchema = z
  .array(z.string().regex(/^[A-Za-z][\w.]{0,99}$/, 'a metric such as deviceMetrics.voltage'))
  .min(1)
  .max(MAX_CHART_METRICS)
  .refine(isUnique, 'each only once')
  .refine((all) => new Set(all.map(unitOf)).size <= MAX_CHART_UNITS, `at most ${MAX_CHART_UNITS} units`)
  .describe(`As in GET /api/telemetry, in at most ${MAX_CHART_UNITS} units`)

const chartSchema = z
  .strictObject({
    title: line(MAX_CHART_TITLE).describe('Empty: its measurements name it'),
    metrics: metricsSchema,
    nodes: z
      .array(z.int().min(1).lt(BROADCAST))
      .max(MAX_CHART_NODES)
      .refine(isUnique, 'each only once')
      .describe('Numbers of nodes that you see'),
  })
  .refine(({ metrics, nodes }) => metrics.length * nodes.length <= MAX_CHART_LINES, {
    path: ['nodes'],
    message: `at most ${MAX_CHART_LINES} lines: each measurement of each node is one`,
  })

const chartsSchema = z.array(chartSchema).max(MAX_BOARD_CHARTS)
export type Chart = z.infer<typeof chartSchema>

export const newBoardSchema = z.strictObject({
  name: line(MAX_BOARD_NAME).min(1),
  sharing: z.enum(BOARD_SHARINGS).default('nobody').describe('Who sees it besides you'),
  readers: z
    .array(line(MAX_USERNAME).min(1))
    .max(MAX_BOARD_READERS)
    .refine((names) => isUnique(names.map((name) => name.toLowerCase())), 'each only once')
    .default([])
    .describe('Usernames, for `named`. Names without a user are kept, and nobody is told which ones exist'),
  charts: chartsSchema.default([]),
})
export type NewBoard = z.infer<typeof newBoardSchema>

/** The charts of a row. A damaged one has none. */
export function parseCharts(text: string): readonly Chart[] {
  return chartsSchema.safeParse(JSON.parse(text)).data ?? []
}

const common = {
  id: z.int(),
  name: z.string(),
  owner: z.string().describe('Username'),
  isOwn: z.boolean().describe('Only the owner changes a board'),
  sharing: z.enum(BOARD_SHARINGS).nullable().describe('null: told only to the owner'),
}

export const boardListSchema = z.object({
  boards: z.array(z.object(common)).describe('Your own in your order, then those that others share'),
  maxBoards: z.int(),
})

export const boardSchema = z
  .object({
    ...common,
    readers: z.array(z.string()).describe('Empty for others than the owner'),
    charts: z.array(
      z.object({
        title: z.string(),
        metrics: z.array(z.string()),
        nodes: z
          .array(z.object({ nodeNum: nodeNumField, nodeId: nodeIdField, name: z.string().nullable() }))
          .describe('Those that you see'),
      }),
    ),
  })
  .meta({ id: 'Board', description: 'Charts to draw from GET /api/telemetry. It contains no measurements' })
