import { ownedBy } from '../../base/owned.ts'
import * as z from 'zod'
import { Config_DeviceConfig_RoleSchema } from '../../../meshtastic/gen/config_pb.ts'
import { nodes } from '../../../db/schema.ts'
import { enumName } from '../../../meshtastic/enum-name.ts'
import { MAX_WATCHED } from '../../../shared/alerts/alert-kinds.ts'
import { bodyNodeNum } from '../../mesh/sending/send.ts'
import { BROADCAST } from '../../../meshtastic/node-id.ts'

export const watchedNode = bodyNodeNum.refine((nodeNum) => nodeNum !== BROADCAST && nodeNum !== 0, 'a node')
export const watchedList = z
  .array(watchedNode)
  .min(1)
  .max(MAX_WATCHED)
  .refine((nodes) => new Set(nodes).size === nodes.length, 'each node once')
  .describe('Node numbers or !hex')

export const watchedSchema = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.enum(['all', 'favorites', 'own']) }),
    z.strictObject({
      kind: z.literal('role'),
      roles: z
        .array(z.string().regex(/^[A-Z][A-Z0-9_]{0,39}$/))
        .min(1)
        .max(20)
        .describe('Names as in the protocol, e.g. ROUTER'),
    }),
    z.strictObject({ kind: z.literal('list'), nodes: watchedList }),
  ])
  .meta({
    id: 'WatchedNodes',
    description: 'Which nodes a rule watches. `all` and a role never include ignored nodes',
  })
export type Watched = z.infer<typeof watchedSchema>

export type WatchedNode = {
  readonly nodeNum: number
  readonly role: number | null
  readonly isFavorite: boolean
  readonly isLocal: boolean
  readonly isIgnored: boolean
}

/** The columns that decide whether a node is watched. */
export const watchedColumns = {
  nodeNum: nodes.nodeNum,
  role: nodes.role,
  isFavorite: nodes.isFavorite,
  isLocal: nodes.isLocal,
  isIgnored: nodes.isIgnored,
}

/** Returns a check whether one rule watches a node. It is built once, because it runs for each batch. */
export const watcher = ownedBy(makeWatcher)

function makeWatcher(watched: Watched): (node: WatchedNode) => boolean {
  switch (watched.kind) {
    case 'all':
      return ({ isIgnored }) => !isIgnored
    case 'favorites':
      return ({ isFavorite }) => isFavorite
    case 'own':
      return ({ isLocal }) => isLocal
    case 'role': {
      const roles = new Set(watched.roles)
      return ({ role, isIgnored }) =>
        !isIgnored && role !== null && roles.has(enumName(Config_DeviceConfig_RoleSchema, role))
    }
    case 'list': {
      const nodes = new Set(watched.nodes)
      return ({ nodeNum }) => nodes.has(nodeNum)
    }
    default:
      return watched satisfies never
  }
}
