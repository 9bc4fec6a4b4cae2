import { and, desc, sql } from 'drizzle-orm'
import { nodeChanges } from '../../../db/schema.ts'
import { prepareOnce } from '../../../db/store.ts'
import { Config_DeviceConfig_RoleSchema } from '../../../meshtastic/gen/config_pb.ts'
import { HardwareModelSchema } from '../../../meshtastic/gen/hardware_pb.ts'
import { enumName } from '../../../meshtastic/enum-name.ts'
import type { ChangedField } from '../../../shared/mesh/node-changes.ts'
import { onVisibleChannel, visibleValues } from '../../accounts/access/visible.ts'
import type { Reader } from '../../base/context.ts'

export type NodeChange = {
  readonly t: number
  readonly field: ChangedField
  readonly before: string
  readonly after: string | null
}

const queries = prepareOnce((db) => ({
  ofNodes: db
    .select({ t: nodeChanges.t, field: nodeChanges.field, before: nodeChanges.before, after: nodeChanges.after })
    .from(nodeChanges)
    .where(
      and(
        sql`${nodeChanges.nodeNum} in (select value from json_each(${sql.placeholder('nums')}))`,
        onVisibleChannel(nodeChanges.channel),
      ),
    )
    .orderBy(desc(nodeChanges.id))
    .prepare(),
}))

/** What a node with these numbers reported differently than before, the latest first, as far as the viewer may see it. */
export async function listChanges({ store, viewer }: Reader, nums: readonly number[]): Promise<NodeChange[]> {
  const rows = await queries(store).ofNodes.all({ nums: JSON.stringify(nums), ...visibleValues(viewer.view) })
  return rows.map((row) => ({
    ...row,
    before: named(row.field, row.before),
    after: row.after && named(row.field, row.after),
  }))
}

function named(field: ChangedField, value: string): string {
  if (field === 'role') return enumName(Config_DeviceConfig_RoleSchema, Number(value))
  return field === 'hwModel' ? enumName(HardwareModelSchema, Number(value)) : value
}
