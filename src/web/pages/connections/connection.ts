import type { InferRequestType, InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'

export type Connections = InferResponseType<typeof api.connections.$get, 200>
export type Connection = Connections['connections'][number]
/** The options of a port for apps. */
export type PortOptions = NonNullable<Connection['virtualNode']>['options']
/** A kind of connection that can be added. */
export type Kind = InferRequestType<typeof api.connections.$post>['json']['kind']
export type Settings = Readonly<Record<string, unknown>>
/** What was found at an address. */
export type Found = InferResponseType<typeof api.connections.test.$post, 200>
export type Candidate = InferResponseType<typeof api.connections.candidates.$get, 200>['candidates'][number]
