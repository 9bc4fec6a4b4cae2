import { expect, test } from 'vitest'
import './page.ts'
import {
  MAX_OVERLAY_SHAPES,
  MAX_SHAPE_DESCRIPTION,
  MAX_SHAPE_NAME,
  MAX_SHAPE_POINTS,
} from '../../../src/shared/limits.ts'
import { heardIn } from '../../../src/web/pages/map/live/heard.ts'
import { partsOf } from '../../../src/web/pages/map/overlays/send.ts'

const node = (data: Record<string, unknown>) => heardIn({ kind: 'node', data: { nodeNum: 7, ...data } })

test('an event shows a packet only if the node was heard', () => {
  expect(heardIn(null)).toBeNull()
  expect(node({ changes: { notes: 'on the mast' }, packets: [] })).toBeNull()
  expect(node({ isDeleted: true })).toBeNull()
  expect(node({ changes: { lastHeard: 5 } })).toEqual({ nodeNum: 7, receivers: [] })
  // An anonymous visitor learns no more.
  expect(node({ heardAt: 5, signed: false })).toEqual({ nodeNum: 7, receivers: [] })
  const packets = [
    { receiver: 1, hopsAway: 0, viaMqtt: false },
    { receiver: 2, hopsAway: 1, viaMqtt: false },
    { receiver: 3, hopsAway: 0, viaMqtt: true },
    { receiver: null },
    'x',
  ]
  expect(node({ packets })).toEqual({
    nodeNum: 7,
    receivers: [
      { nodeNum: 1, isDirect: true },
      { nodeNum: 2, isDirect: false },
      { nodeNum: 3, isDirect: false },
    ],
  })
})

test('each part of an overlay fits into a request, the largest shape included', async () => {
  const largest = {
    type: 'Feature',
    geometry: {
      type: 'Polygon',
      coordinates: [Array.from({ length: MAX_SHAPE_POINTS }, () => [-123.123456, -12.123456] as const)],
    },
    properties: {
      name: '🗻'.repeat(MAX_SHAPE_NAME),
      description: '🗻'.repeat(MAX_SHAPE_DESCRIPTION),
      colour: '#aabbcc',
    },
  } as const
  const small = { type: 'Feature', geometry: { type: 'Point', coordinates: [1, 1] }, properties: {} } as const
  const parts = await partsOf([largest, ...Array.from({ length: MAX_OVERLAY_SHAPES - 2 }, () => small), largest])
  expect(parts.flat()).toHaveLength(MAX_OVERLAY_SHAPES)
  for (const part of parts) {
    const body = JSON.stringify({ name: 'ä'.repeat(100), isPublic: false, features: part, isWhole: false })
    expect(Buffer.byteLength(body)).toBeLessThan(256 * 1024)
  }
})
