import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { create } from '@bufbuild/protobuf'
import type { z } from 'zod'
import { MeshPacketSchema } from '../../src/meshtastic/gen/packet_pb.ts'
import { BROADCAST } from '../../src/meshtastic/node-id.ts'
import { packet, position, text, user } from '../support/mesh/mesh.ts'
import { startMqttBroker } from '../support/radio/mqtt-broker.ts'
import { type floodReport, floodSchema } from './flood-plan.ts'

// A broker and its publishers in a process of their own: `fork` it, and send it one flood.

const TICK_MS = 20

const broker = await startMqttBroker()
const tell = (report: z.infer<typeof floodReport>) => process.send?.(report)
tell({ url: broker.url })
const [asked]: unknown[] = await once(process, 'message')
const flood = floodSchema.parse(asked)

/** Invented nodes send everything that a node sends. */
const CONTENTS = [
  (n: number) => user({ id: 'x', longName: `Made up ${n}`, shortName: 'MU' }),
  () => position({ latitudeI: 525000000, longitudeI: 134000000 }),
  (n: number) => text(`made up ${n}`),
] as const

async function publish(from: number, data: Parameters<typeof packet>[0]): Promise<void> {
  const { value } = packet(data, { from, to: BROADCAST })
  await broker.publishPacket(create(MeshPacketSchema, Object(value)))
}

const sent = { invented: 0, loud: 0, real: 0 }
const began = performance.now()
for (let elapsed = 0; elapsed < flood.seconds; elapsed = (performance.now() - began) / 1000) {
  for (; sent.invented < flood.invented * elapsed; sent.invented++) {
    const content = CONTENTS[sent.invented % CONTENTS.length] ?? CONTENTS[0]
    await publish(flood.firstInvented + sent.invented, content(sent.invented))
  }
  for (; sent.loud < flood.loud * elapsed; sent.loud++) await publish(flood.loudNode, text(`again ${sent.loud}`))
  for (; sent.real < flood.real * elapsed; sent.real++) {
    await publish(flood.realNodes[sent.real % flood.realNodes.length] ?? 0, text(`real ${sent.real}`))
  }
  await wait(TICK_MS)
}
tell(sent)
await once(process, 'disconnect')
await broker.stop()
