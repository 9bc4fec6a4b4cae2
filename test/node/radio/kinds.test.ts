import { create } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'
import { createIngest } from '../../../src/app/mesh/ingest/ingest.ts'
import { FromRadioSchema } from '../../../src/meshtastic/gen/stream_pb.ts'
import { toRadioEvent } from '../../../src/meshtastic/radio-event.ts'
import { LINK_KINDS, settingsFor, SOURCES } from '../../../src/shared/mesh/link-kinds.ts'
import { START } from '../../support/app.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { textPacket } from '../../support/mesh/mesh.ts'

const endings: (() => unknown)[] = []
afterEach(() => {
  for (const end of endings.splice(0)) end()
})

test.each(LINK_KINDS)('what a link of the kind %s hears counts as heard by us only if it is a radio', async (kind) => {
  const store = openMemoryStore()
  endings.push(() => store.close())
  const ingest = createIngest(store, { radios: ['hill'] })
  const source = { kind, name: 'hill' }
  const payloads = [
    { case: 'myInfo', value: { myNodeNum: 0xa0cb0001 } },
    { case: 'packet', value: textPacket(9, 'hello') },
  ] as const
  const batch = payloads.map((payloadVariant) => ({
    source,
    event: toRadioEvent(create(FromRadioSchema, { payloadVariant }), START, false),
    raw: null,
  }))
  await ingest.store(batch)
  const [row] = store.sqlite
    .prepare('select last_heard_by_radio r, last_heard_by_broker b from nodes where node_num = 5')
    .all()
  const isOurs = SOURCES[kind].how !== 'feed'
  expect(row).toStrictEqual({ r: isOurs ? START : null, b: isOurs ? null : START })
})

test.each(['radio', 'feed', 'simulated'] as const)(
  'pages say what to set for a %s, and nothing that cannot be set',
  (how) => {
    const names = settingsFor(how).split(' or ')
    expect(names).toStrictEqual(
      LINK_KINDS.flatMap((kind) => (SOURCES[kind].how === how ? (SOURCES[kind].setting ?? []) : [])),
    )
    expect(names.every((name) => /^[A-Z_]+/.test(name))).toBe(true)
  },
)
