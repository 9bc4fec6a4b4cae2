import { neighbors, nodes, positions, traceroutes, waypoints } from '../../../src/db/schema.ts'
import type { SqliteStore } from '../../../src/node/database.ts'

const MINUTE = 60_000

/** Number of the demo's node at this place of its list. */
export const demoNode = (index: number) => 0xa0cb0001 + index * 0x0101

/** Routes, links, a track and waypoints among the demo's nodes, which must exist already. */
export async function addTopology({ db }: Pick<SqliteStore, 'db'>, now: number): Promise<void> {
  const at = (minutes: number) => now - minutes * MINUTE
  const asked = (to: number, minutes: number) => ({
    fromNodeNum: demoNode(0),
    toNodeNum: demoNode(to),
    requestId: 7000 + to,
    timestamp: at(minutes),
    requestedBy: 'admin',
  })
  const [castle, tower, ridge, hut] = [1, 2, 10, 17].map(demoNode)
  await db.insert(traceroutes).values([
    {
      ...asked(17, 40),
      answeredAt: at(39),
      state: 'delivered' as const,
      route: JSON.stringify({
        route: [castle, ridge],
        snrTowards: [6.25, -9.5, -16],
        routeBack: [ridge, tower],
        snrBack: [-14.75, -3, 4.5],
      }),
    },
    {
      ...asked(23, 30),
      answeredAt: at(29),
      state: 'delivered' as const,
      // The node between did not report its number.
      route: JSON.stringify({ route: [tower, null], snrTowards: [5, null, -11.25], routeBack: [], snrBack: [] }),
    },
    { ...asked(24, 20), state: 'failed' as const, routingError: 'NO_RESPONSE' },
    { ...asked(14, 10), state: 'unknown' as const },
    {
      fromNodeNum: hut ?? 0,
      toNodeNum: castle ?? 0,
      requestId: 1,
      timestamp: at(5),
      answeredAt: at(5),
      state: 'delivered' as const,
      route: JSON.stringify({ route: [], snrTowards: [-12.25], routeBack: [], snrBack: [-10] }),
    },
    { ...asked(13, 0), state: 'relayed' as const },
  ])
  const links = [
    [0, 1, 7.25],
    [1, 0, 5.5],
    [0, 2, 3],
    [2, 0, -4.75],
    [1, 10, -9],
    [10, 1, -11.5],
    [10, 17, -16.25],
    [2, 23, -18],
    [2, 18, -8.5],
    [5, 7, 2.25],
    [7, 15, -13.5],
    [0, 3, 9.75],
    [0, 4, 8],
    [6, 0, 1.5],
  ] as const
  await db
    .insert(neighbors)
    .values(
      links.map(([a, b, snr], index) => ({ nodeNum: demoNode(a), neighborNum: demoNode(b), snr, t: at(index * 7) })),
    )
    .onConflictDoNothing()
  await db
    .insert(waypoints)
    .values([
      place(1, 'Meeting point', '🍺', 'Thursday 19:00', 49.8854, 10.8885, now + 3_600_000),
      place(2, 'Flooded path', '⚠️', '', 49.9051, 10.9102, null),
      place(3, 'Gone by now', '👻', '', 49.9, 10.9, now - 1000),
    ])
  const known = await db.select({ id: nodes.id, nodeNum: nodes.nodeNum }).from(nodes)
  const walker = known.find(({ nodeNum }) => nodeNum === demoNode(11))
  if (walker === undefined) throw new Error('the demo has no such node')
  await db.insert(positions).values(
    Array.from({ length: 40 }, (_, index) => ({
      nodeId: walker.id,
      t: at(60 * 3 - index * 4),
      latitude: 49.865 + Math.sin(index / 6) * 0.006 + index * 0.0003,
      longitude: 10.87 + index * 0.0009,
    })),
  )

  function place(
    id: number,
    name: string,
    icon: string,
    description: string,
    latitude: number,
    longitude: number,
    expiresAt: number | null,
  ) {
    return { id, fromNodeNum: demoNode(11), t: at(90), name, icon, description, latitude, longitude, expiresAt }
  }
}
