import { sql } from 'drizzle-orm'
import * as z from 'zod'
import { FIRST_NUMBER, identifyChannel, nameIn, presetChannelNames } from '../../../../meshtastic/channel-identity.ts'
import { expandPsk, hashChannel } from '../../../../meshtastic/crypto/channel.ts'
import { FIRST_DIRECT, WITHHELD } from '../../../../shared/mesh/channels.ts'
import { roughness } from '../../../../shared/mesh/distance.ts'
import { DAY_MS } from '../../../../shared/time.ts'
import type { Store } from '../../../../db/store.ts'
import { readChannelTable } from '../../radios/channel-table.ts'
import { oldestPosition } from '../oldest.ts'
import { aboutHeard, defineRule } from '../rule.ts'

/** Firmware 2.8 tells no more on a channel whose key everybody has: PositionPrecision.h. */
const PUBLIC_BITS = 15
/** No key, and the default key. */
const PUBLIC_KEYS = [[], [1]].map((psk) => expandPsk(Uint8Array.from(psk)))
const PRESETS: ReadonlySet<string> = new Set(presetChannelNames())

/** A position that is more precise than its owner may wish, on a channel that everybody can read. */
export const precise = defineRule({
  name: 'precise',
  evidence: z.object({
    bits: z.int().describe('Of the latest position'),
    metres: z.number().describe('As far it may be from the node'),
    channel: z.string(),
  }),
  past: { everyMs: DAY_MS, oldest: oldestPosition },
  async look(looking) {
    const { store, now } = looking
    const rows = await aboutHeard(looking, (nums) =>
      store.db.all<{ nodeNum: number; bits: number | null; channel: number | null }>(
        sql`select n.node_num as nodeNum, p.precision_bits as bits, p.channel as channel from nodes n
          cross join positions p on p.node_id = n.id
            and p.t = (select max(t) from positions where node_id = n.id and t <= ${now})
          where n.node_num in (select value from json_each(${nums})) and not n.is_local and p.t >= ${now - 7 * DAY_MS}`,
      ),
    )
    const exact = rows.flatMap(({ nodeNum, bits, channel }) =>
      bits === null || bits <= PUBLIC_BITS || channel === null || channel < 0 || channel >= FIRST_DIRECT
        ? []
        : [{ nodeNum, bits, channel }],
    )
    const isPublic = exact.length === 0 ? new Map<number, Public>() : await readPublic(store)
    return exact.flatMap(({ nodeNum, bits, channel }) => {
      const found = isPublic.get(channel >= WITHHELD ? channel - WITHHELD : channel)
      if (found === undefined) return []
      const evidence = { bits, metres: Math.round(roughness(bits)), channel: found.name }
      return [{ nodes: [nodeNum], channels: [channel], isLikely: found.isLikely, evidence }]
    })
  },
})

type Public = { readonly name: string; readonly isLikely: boolean }

/**
 * Channels whose hash is that of a key which everybody has, by number. Another key may have the same hash; hardly under
 * a name that firmware itself gives.
 */
async function readPublic(store: Store): Promise<Map<number, Public>> {
  const table = await readChannelTable(store, null)
  const heard = table
    .list()
    .flatMap(({ index, name }) => (index < FIRST_NUMBER ? [] : [[index, identifyChannel(index % 256, name)] as const]))
  return new Map(
    [...heard, ...table.identities()].flatMap(([number, identity]) => {
      const name = nameIn(identity)
      const isPublic = PUBLIC_KEYS.some((key) => identifyChannel(hashChannel(name, key), name) === identity)
      return isPublic ? [[number, { name, isLikely: PRESETS.has(name) }] as const] : []
    }),
  )
}
