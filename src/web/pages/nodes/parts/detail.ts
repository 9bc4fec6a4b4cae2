import type { InferResponseType } from 'hono/client'
import type { api } from '../../../api.ts'

/** A node with what only its own page needs. */
export type NodeDetail = InferResponseType<(typeof api.nodes)[':id']['$get'], 200>
