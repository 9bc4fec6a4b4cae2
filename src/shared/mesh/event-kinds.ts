import { namesOf } from '../names.ts'
import type { Resource } from '../access/resources.ts'

/**
 * The kinds of live events, and the permission that a viewer needs for them. `own`: each event is for one user only.
 */
export const EVENT_KINDS = {
  node: 'nodes',
  message: 'messages',
  delivery: 'messages',
  traceroute: 'info',
  neighbors: 'info',
  link: 'info',
  configuration: 'configuration',
  alert: 'own',
} as const satisfies Record<string, Resource | 'own'>

export type EventKind = keyof typeof EVENT_KINDS
export const EVENT_KIND_NAMES = namesOf(EVENT_KINDS)
