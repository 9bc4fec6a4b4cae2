import { create, isMessage } from '@bufbuild/protobuf'
import { eq, sql } from 'drizzle-orm'
import { channels, sources } from '../../db/schema.ts'
import { prepareOnce } from '../../db/store.ts'
import { createChannelReader } from '../../meshtastic/channel-identity.ts'
import type { RawSection } from '../../meshtastic/config/sections.ts'
import { channelsOf } from '../../meshtastic/exchange/channel-plan.ts'
import { Config_LoRaConfigSchema } from '../../meshtastic/gen/config_pb.ts'
import { type FromRadio, FromRadioSchema } from '../../meshtastic/gen/stream_pb.ts'
import { canReadChannel } from '../../shared/access/scope.ts'
import type { SignedInCtx } from '../base/context.ts'
import { configuredRadios, readChannelTable } from '../mesh/radios/channel-table.ts'
import type { RadioDevice } from './device.ts'

const queries = prepareOnce((db) => ({
  slots: db
    .select({ index: channels.index, identity: channels.identity })
    .from(channels)
    .innerJoin(sources, eq(sources.id, channels.sourceId))
    .where(eq(sources.name, sql.placeholder('source')))
    .prepare(),
}))

/** Whether the viewer may read the channel that a slot of the radio has, and thereby have its key. */
export async function readSlots(
  { store, radio, viewer: { view } }: SignedInCtx,
  { source, reveal }: Pick<RadioDevice, 'source' | 'reveal'>,
): Promise<(slot: number) => boolean> {
  if (view.channels === 'all') return () => true
  const table = await readChannelTable(store, configuredRadios(radio))
  const rows = await queries(store).slots.all({ source })
  const stored = new Map(rows.map(({ index, identity }) => [index, identity]))
  const identities = identify(reveal().sections)
  // A slot whose new channel is not stored yet still has the number of the old one.
  const isSettled = (slot: number) => stored.has(slot) && identities.get(slot) === stored.get(slot)
  return (slot) => isSettled(slot) && canReadChannel(view, table.numberOf(source, slot))
}

/** Identities of the channels by slot, as a connection reads them. */
function identify(sections: ReadonlyMap<string, RawSection>): ReadonlyMap<number, string | null> {
  const lora = sections.get('lora')?.parts[0]?.message
  const variants: FromRadio['payloadVariant'][] = channelsOf(sections).map((value) => ({ case: 'channel', value }))
  if (isMessage(lora, Config_LoRaConfigSchema)) {
    const message = create(FromRadioSchema, {
      payloadVariant: { case: 'config', value: { payloadVariant: { case: 'lora', value: lora } } },
    })
    variants.push(message.payloadVariant)
  }
  variants.push({ case: 'configCompleteId', value: 1 })
  const read = createChannelReader()
  const identified = variants.flatMap((payloadVariant) => read(create(FromRadioSchema, { payloadVariant })))
  return new Map(identified.map(({ channel, identity }) => [channel.index, identity]))
}
