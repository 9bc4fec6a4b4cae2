import type { InferResponseType } from 'hono/client'
import type { api } from '../../../api.ts'

export type CopiesState = InferResponseType<typeof api.system.copies.$get>
export type Place = CopiesState['places'][number]
export type Copy = CopiesState['copies'][number]
export type Kind = Place['kind']
export type Settings = Readonly<Record<string, unknown>>
