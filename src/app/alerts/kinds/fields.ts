import * as z from 'zod'
import { MAX_DESTINATIONS } from '../../../shared/alerts/alert-kinds.ts'
import { timeInput } from '../../http/validate.ts'
import { plainName } from '../names.ts'
import { watchedNode } from '../world/watched.ts'

/** The fields of rules of every kind. */
export const common = {
  name: plainName,
  enabled: z.boolean().default(true),
  destinations: z
    .array(z.int().positive())
    .max(MAX_DESTINATIONS)
    .refine((ids) => new Set(ids).size === ids.length, 'each destination once')
    .default([])
    .describe('IDs of your destinations; with none, alerts are only shown on the page'),
  repeatHours: z
    .int()
    .min(1)
    .max(168)
    .nullable()
    .default(null)
    .describe('Interval at which a firing alert is sent again; null: never'),
  urgent: z.boolean().default(false).describe('Also sent in your quiet hours'),
  tellResolved: z.boolean().default(true).describe('Also sent when the alert is over'),
  silencedUntil: timeInput.nullable().default(null).describe('Nothing is sent before this time'),
  silencedNodes: z
    .array(z.strictObject({ node: watchedNode, until: timeInput }))
    .max(50)
    .default([])
    .describe('Nothing is sent about these nodes before this time'),
}

/** A rule of any kind. */
export type CommonRule = z.infer<z.ZodObject<typeof common>> & { readonly kind: string }
