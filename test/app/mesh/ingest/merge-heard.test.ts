import { expect, it } from 'vitest'
import { mergeHeard } from '../../../../src/app/mesh/ingest/rows/merge-heard.ts'
import { createSeededRandom } from '../../../../src/node/radio/demo/seeded-random.ts'
import { START } from '../../../support/app.ts'
import {
  createTestMesh,
  FAR,
  heard,
  LOCAL,
  myInfo,
  nodeStatus,
  packet,
  position,
  seconds,
  store,
  telemetry,
  type TestMesh,
  text,
  user,
} from '../../../support/mesh/mesh.ts'

/** A packet of one of a few nodes, with anything that changes a node. */
function anyPacket(random: () => number, at: number) {
  const pick = <const T>(all: readonly [T, ...T[]]): T => all[Math.floor(random() * all.length)] ?? all[0]
  const maybe = <T extends object>(some: T): Partial<T> => (random() < 0.5 ? some : {})
  const time = pick([0, seconds(at) - Math.floor(random() * 5000)])
  const data = pick([
    () => text('words'),
    () => nodeStatus(pick(['here', 'there', ''])),
    () =>
      position({
        time,
        ...maybe({ latitudeI: 5, longitudeI: pick([0, 7]) }),
        ...maybe({ altitude: pick([0, 80]) }),
        ...maybe({ precisionBits: 13 }),
      }),
    () =>
      user({
        ...maybe({ longName: pick(['A', 'B', 'B\u200b']) }),
        ...maybe({ shortName: pick(['a', 'b']), role: pick([0, 2]), isLicensed: pick([true, false]) }),
        ...maybe({ publicKey: new Uint8Array(32).fill(pick([1, 1, 1, 2])), hwModel: 43 }),
      }),
    () =>
      telemetry({
        time,
        variant: {
          case: 'deviceMetrics',
          value: { ...maybe({ batteryLevel: pick([0, 9]) }), ...maybe({ voltage: 3 }) },
        },
      }),
  ])()
  return packet(data, {
    from: pick([FAR, FAR, 7, LOCAL]),
    // Older packets were delayed somewhere, and are not merged.
    rxTime: pick([0, seconds(at) - Math.floor(random() * 50)]),
    hopStart: pick([0, 3]),
    hopLimit: pick([3, 1]),
    viaMqtt: random() < 0.2,
    channel: pick([0, 0, 2]),
    ...maybe({ rxRssi: pick([-70, -90]), rxSnr: pick([0, 2]) }),
  })
}

/** Without ids, of which some are skipped, and without counts of writes. */
const nodesOf = ({ app }: TestMesh) =>
  app.store.sqlite
    .prepare('select * from nodes order by node_num')
    .all()
    .map((row) => ({ ...Object(row), id: null, revision: null }))

it.each([1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18])(
  'packets in one batch leave the nodes in the same state as packets one by one (seed %i)',
  async (seed) => {
    const random = createSeededRandom(seed)
    const [together, apart] = [await createTestMesh(), await createTestMesh()]
    for (let batch = 0; batch < 10; batch++) {
      const at = START + batch * 1000
      const variants = [...(batch === 0 ? [myInfo] : []), ...Array.from({ length: 20 }, () => anyPacket(random, at))]
      await together.ingest.store(variants.map((variant) => heard(variant, { at })))
      for (const variant of variants) await store(apart.ingest, [variant], { at })
      expect(nodesOf(together)).toStrictEqual(nodesOf(apart))
    }
    expect(nodesOf(together)).toHaveLength(3)
    together.app.close()
    apart.app.close()
  },
)

it('writes one row for each node and two for two keys', () => {
  const row = (nodeNum: number, publicKey: string | null) => ({ nodeNum, source: 's', seenAt: START, publicKey })
  const rows = [row(1, 'a'), row(2, null), row(1, null), row(1, 'b'), row(2, 'c'), row(1, 'b')]
  expect(mergeHeard(rows).map(({ nodeNum, publicKey }) => [nodeNum, publicKey])).toStrictEqual([
    [1, 'a'],
    [2, 'c'],
    [1, 'b'],
  ])
})
