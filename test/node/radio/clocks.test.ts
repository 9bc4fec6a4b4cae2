import { expect, test } from 'vitest'
import { create } from '@bufbuild/protobuf'
import { FromRadioSchema } from '../../../src/meshtastic/gen/stream_pb.ts'
import { toRadioEvent } from '../../../src/meshtastic/radio-event.ts'
import { hearClocks } from '../../../src/node/radio/clocks.ts'
import { SOURCE_KINDS, SOURCES } from '../../../src/shared/mesh/link-kinds.ts'
import { START } from '../../support/app.ts'
import { textPacket } from '../../support/mesh/mesh.ts'

test.each(SOURCE_KINDS)('a source of the kind %s confirms the clock if it is a radio of our own', (kind) => {
  const rxTime = START / 1000
  const value = { ...textPacket(9, 'by radio'), rxTime }
  const event = toRadioEvent(create(FromRadioSchema, { payloadVariant: { case: 'packet', value } }), START, false)
  const heard: unknown[] = []
  hearClocks({ agree: (by, theirs) => heard.push([by, theirs]) }, [
    { source: { kind, name: 'hill' }, event, raw: null },
  ])
  expect(heard).toStrictEqual(SOURCES[kind].how === 'radio' ? [['the radio hill', START]] : [])
})
