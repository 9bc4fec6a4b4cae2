import { nodes } from '../../src/db/schema.ts'
import { openRadioSite, type RadioSite } from '../support/radio/site.ts'

export const FIRST = 0x10000000

/** The web application with a radio, and this many nodes with names, places, keys and measurements. */
export async function openLargeSite(count: number): Promise<RadioSite> {
  const lastHeard = Date.now() - 600_000
  const all = Array.from({ length: count }, (_, index) => ({
    nodeNum: FIRST + index,
    longName: `Crowd ${String(index).padStart(4, '0')}`,
    shortName: String(index).padStart(4, '0'),
    hwModel: [43, 9, 25, 31][index % 4] ?? 43,
    role: index % 10 === 0 ? 2 : 0,
    publicKey: Buffer.from(
      Array.from({ length: 32 }, (__, at) => (index * 31 + at * 17 + ((index * at) % 251)) % 256),
    ).toString('base64'),
    latitude: 47 + ((index * 7919) % count) / 1000,
    longitude: 8 + ((index * 104_729) % count) / 1000,
    altitude: 300 + (index % 700),
    precisionBits: 16,
    positionTime: lastHeard,
    batteryLevel: index % 100,
    voltage: 3.3 + (index % 90) / 100,
    channelUtilization: (index % 300) / 10,
    airUtilTx: (index % 50) / 10,
    uptimeSeconds: index * 97,
    deviceMetricsTime: lastHeard,
    hopsAway: index % 7,
    channel: 0,
    firstHeard: lastHeard,
    lastHeard: lastHeard + index,
  }))
  return openRadioSite(undefined, [], async ({ db }) => {
    for (let at = 0; at < count; at += 500) await db.insert(nodes).values(all.slice(at, at + 500))
  })
}
