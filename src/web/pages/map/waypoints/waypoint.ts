import type { InferResponseType } from 'hono/client'
import type { api } from '../../../api.ts'

export type Waypoint = InferResponseType<typeof api.waypoints.$get>['waypoints'][number]

/** Stands for a missing icon. */
export const DEFAULT_ICON = '📍'
