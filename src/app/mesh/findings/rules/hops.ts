import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { DAY_MS } from '../../../../shared/time.ts'
import { hasPages, selectWithin } from '../../../../db/packet-log.ts'
import { rangeOf, walkBack } from '../../../search/walk.ts'
import { lastPacketBy } from '../../topology/last-packet.ts'
import { oldestPacket } from '../oldest.ts'
import { aboutHeard, defineRule, type Looking } from '../rule.ts'

/** More than firmware sets by itself. */
const LARGE = 5
const FEW = 10
/** Packets of a node that are looked at. */
const LATEST = 50
/** Packets of a packed log that are looked at. */
const MOST_PACKED = 200_000

/** A node whose packets may go on for more hops than they need. */
export const hops = defineRule({
  name: 'hops',
  evidence: z.object({
    limit: z.int().describe('Hops that its packets may take'),
    needed: z.int().describe('The most that one took to any receiver of the last day'),
  }),
  past: { everyMs: DAY_MS, oldest: oldestPacket },
  async look(looking) {
    const { store } = looking
    const last = await lastPacketBy(looking)
    const rows = (await hasPages(store)) ? await readPacked(looking, last) : await readRows(looking, last)
    return rows.map(({ nodeNum, limited, needed }) => ({
      nodes: [nodeNum],
      channels: [],
      isLikely: false,
      evidence: { limit: limited, needed },
    }))
  },
})

type Limits = { readonly nodeNum: number; readonly limited: number; readonly needed: number }

const isTold = ({ limited, needed }: Limits) => limited >= LARGE && needed <= limited - 3

/** The packets of the last day that say how far they came, and were heard off the air. */
const SAYS_HOPS = sql`p.hops_away is not null and not p.replayed and not p.via_mqtt
  and p.trust_level is not 'spoofed' and p.trust_level is not 'own'`

async function readRows(looking: Looking, last: number): Promise<readonly Limits[]> {
  const { store, now } = looking
  return aboutHeard(looking, (nums) =>
    store.db.all<Limits>(
      sql`select n.value as nodeNum, max(p.hop_limit + p.hops_away) as limited, max(p.hops_away) as needed
        from json_each(${nums}) n cross join packets p on p.id in (
          select x.id from packets x where x.from_node_num = n.value and x.id <= ${last} order by x.id desc limit ${LATEST})
        where p.t between ${now - DAY_MS} and ${now} and ${SAYS_HOPS}
        group by n.value having count(*) >= ${FEW} and limited >= ${LARGE} and needed <= limited - 3`,
    ),
  )
}

/** A page has packets of many nodes, so they are read once, from the latest to those of a day before. */
async function readPacked({ store, now, heard, pause }: Looking, last: number): Promise<readonly Limits[]> {
  const known = new Map(heard.map((nodeNum) => [nodeNum, { nodeNum, looked: 0, said: 0, limited: 0, needed: 0 }]))
  const range = await rangeOf(store, 'packet_log', last + 1)
  await walkBack({
    store,
    ...range,
    limit: 1,
    most: MOST_PACKED,
    read: async ({ from: first, before }) => {
      const rows = await store.db.all<Heard>(
        sql`select from_node_num as nodeNum, t, hop_limit as hopLimit, hops_away as hopsAway,
          (p.t between ${now - DAY_MS} and ${now} and ${SAYS_HOPS}) as counts
          from (${selectWithin(first, before)}) p order by id desc`,
      )
      for (const { nodeNum, hopLimit, hopsAway, counts } of rows) {
        const node = known.get(nodeNum)
        if (node === undefined || node.looked++ >= LATEST || counts !== 1 || hopsAway === null) continue
        node.said++
        node.limited = Math.max(node.limited, hopLimit + hopsAway)
        node.needed = Math.max(node.needed, hopsAway)
      }
      const isOver = (rows.at(-1)?.t ?? now) < now - DAY_MS || !(await pause())
      return isOver ? [0] : []
    },
  })
  return [...known.values()]
    .filter((node) => node.said >= FEW && isTold(node))
    .toSorted((a, b) => a.nodeNum - b.nodeNum)
}

type Heard = {
  readonly nodeNum: number
  readonly t: number
  readonly hopLimit: number
  readonly hopsAway: number | null
  readonly counts: number
}
