import type { InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'

export type Waypoint = InferResponseType<typeof api.waypoints.$get>['waypoints'][number]

/** For a waypoint without an icon. */
export const DEFAULT_ICON = '📍'
