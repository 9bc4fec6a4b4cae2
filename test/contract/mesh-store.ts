import { describe, expect, it } from 'vitest'
import { createIngest } from '../../src/app/mesh/ingest.ts'
import { listMessages } from '../../src/app/mesh/messages.ts'
import { listNodes } from '../../src/app/mesh/node-list.ts'
import { deleteExpired } from '../../src/app/mesh/retention.ts'
import { channels, metrics, nodes, positions, telemetry } from '../../src/db/schema.ts'
import type { Store } from '../../src/db/store.ts'
import { decodeFromRadio } from '../../src/meshtastic/from-radio.ts'
import { toRadioEvent } from '../../src/meshtastic/radio-event.ts'
import { readRecordings } from '../meshtastic/recordings.ts'
import { FAR, packet, position, store as storePackets } from '../support/mesh.ts'

const NOW = Date.UTC(2026, 10, 21, 13)

/** The statements of the mesh on a database: they are written in SQL, which each driver must read alike. */
export function meshStoreContract(name: string, open: () => Store): void {
  const count = (table: typeof nodes | typeof positions | typeof telemetry | typeof channels | typeof metrics) =>
    open().db.$count(table)
  const play = async () => {
    const heard = readRecordings('fromradio').flatMap(({ bytes, source }) => {
      const message = decodeFromRadio(bytes)
      return message === null
        ? []
        : [{ source: { kind: 'tcp', name: source } as const, event: toRadioEvent(message, NOW, false) }]
    })
    return createIngest(open()).store(heard)
  }

  describe(`mesh on ${name}`, () => {
    it('takes all that real radios said, once', async () => {
      expect((await play()).length).toBeGreaterThan(20)
      const told = async () => {
        const { json } = await listNodes(open(), { limit: 5000 }, NOW)
        const page = JSON.parse(await listMessages(open(), { limit: 100 }))
        return { nodes: JSON.parse(json), messages: page.messages }
      }
      const first = await told()
      expect(first.nodes).toHaveLength(6)
      expect(first.nodes).toContainEqual(
        expect.objectContaining({
          nodeId: '!796b94bf',
          longName: 'Lab Node B',
          hwModel: 'PORTDUINO',
          isFavorite: true,
          deviceMetrics: {
            batteryLevel: 101,
            voltage: null,
            channelUtilization: 20.18833351135254,
            airUtilTx: 0.25386112928390503,
            uptimeSeconds: 135,
            time: 1_795_256_594_000,
          },
        }),
      )
      expect(first.messages).toHaveLength(9)
      expect(first.messages[0]).toMatchObject({ text: 'B says Überprüfung 👍', emoji: false, pkiEncrypted: false })
      const rows = [await count(telemetry), await count(metrics), await count(channels)]
      expect(rows).toStrictEqual([34, 13, 24])
      await play()
      expect(await told()).toStrictEqual(first)
      expect([await count(telemetry), await count(metrics), await count(channels)]).toStrictEqual(rows)
    })

    it('tells each change of a list from the one before', async () => {
      const tag = async () => (await listNodes(open(), { limit: 5000 }, NOW)).etag
      const before = await tag()
      expect(await tag()).toBe(before)
      await storePackets(createIngest(open()), [packet(position({ latitudeI: 5, longitudeI: 6 }))], { at: NOW })
      expect(await tag()).not.toBe(before)
      const found = await listNodes(open(), { limit: 10, q: '!A0CB0002', since: 1, activeWithin: 60 }, NOW)
      expect(JSON.parse(found.json)).toMatchObject([{ nodeNum: FAR, position: { latitude: 5e-7, longitude: 6e-7 } }])
    })

    it('deletes what has expired', async () => {
      expect(await count(positions)).toBe(1)
      const later = NOW + 1
      const cutoffs = { telemetry: later, positions: later, messages: later }
      const deleted = await deleteExpired(open(), cutoffs, async () => true)
      expect(deleted).toStrictEqual({ telemetry: 34, positions: 1, messages: 9 })
      expect([await count(telemetry), await count(positions), await count(nodes)]).toStrictEqual([0, 0, 7])
      expect(await listMessages(open(), { limit: 1 })).toBe('{"messages":[],"nextBefore":null}')
    })
  })
}
