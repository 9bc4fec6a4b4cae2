import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS } from '../../../../shared/time.ts'
import { lastPacketBy } from '../../topology/last-packet.ts'
import { oldestPacket } from '../oldest.ts'
import { aboutHeard, defineRule } from '../rule.ts'

/** More than firmware sets by itself. */
const LARGE = 5
const FEW = 10
/** Packets of a node that are looked at. */
const LATEST = 50

/** A node whose packets may go on for more hops than they need. */
export const hops = defineRule({
  name: 'hops',
  evidence: z.object({
    limit: z.int().describe('Hops that its packets may take'),
    needed: z.int().describe('The most that one took to any receiver of the last day'),
  }),
  past: { everyMs: DAY_MS, oldest: oldestPacket },
  async look(looking) {
    const { store, now } = looking
    const last = await lastPacketBy(looking)
    const rows = await aboutHeard(looking, (nums) =>
      store.db.all<{ nodeNum: number; limited: number; needed: number }>(
        sql`select n.value as nodeNum, max(p.hop_limit + p.hops_away) as limited, max(p.hops_away) as needed
          from json_each(${nums}) n cross join packets p on p.id in (
            select x.id from packets x where x.from_node_num = n.value and x.id <= ${last} order by x.id desc limit ${LATEST})
          where p.t between ${now - DAY_MS} and ${now} and p.hops_away is not null and not p.replayed and not p.via_mqtt
            and p.trust_level is not 'spoofed' and p.trust_level is not 'own'
          group by n.value having count(*) >= ${FEW} and limited >= ${LARGE} and needed <= limited - 3`,
      ),
    )
    return rows.map(({ nodeNum, limited, needed }) => ({
      nodes: [nodeNum],
      channels: [],
      isLikely: false,
      evidence: { limit: limited, needed },
    }))
  },
})
