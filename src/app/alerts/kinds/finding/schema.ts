import * as z from 'zod'
import { FINDING_RULES } from '../../../../shared/mesh/finding-rules.ts'
import { watchedSchema } from '../../world/watched.ts'
import { common } from '../fields.ts'

export const findingSchema = z
  .strictObject({
    kind: z.literal('finding'),
    ...common,
    findings: z
      .array(z.enum(FINDING_RULES))
      .min(1)
      .max(FINDING_RULES.length)
      .refine((rules) => new Set(rules).size === rules.length, 'each finding once')
      .describe('What is looked for, as in GET /api/findings'),
    nodes: watchedSchema.describe('The node that a finding names first is one of these'),
  })
  .meta({
    id: 'FindingRule',
    description: 'Something is found to be wrong in the mesh that was not before. Looked for each hour',
  })

export type FindingAlertRule = z.infer<typeof findingSchema>
