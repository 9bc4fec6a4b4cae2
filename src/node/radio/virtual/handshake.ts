import type { VirtualNodeOptions } from '../../../app/connections/virtual-node-options.ts'
import { create } from '@bufbuild/protobuf'
import { MyNodeInfoSchema } from '../../../meshtastic/gen/stream_pb.ts'
import {
  emptyChannel,
  redactChannel,
  redactConfig,
  redactDeviceUi,
  redactModuleConfig,
} from '../../../meshtastic/config/redaction.ts'
import { ConfigSchema } from '../../../meshtastic/gen/config_pb.ts'
import { ModuleConfigSchema } from '../../../meshtastic/gen/module_config_pb.ts'
import { RADIO_CHANNELS } from '../../../meshtastic/channel-identity.ts'
import { encodeFromRadio, type FromRadioVariant } from '../../../meshtastic/link/app-messages.ts'
import type { Channel } from '../../../meshtastic/gen/channel_pb.ts'
import type { Config } from '../../../meshtastic/gen/config_pb.ts'
import type { ModuleConfig } from '../../../meshtastic/gen/module_config_pb.ts'
import type { RadioParts } from './copy.ts'
import { isShown, showNode } from './shown.ts'
import type { Sight } from './sight.ts'

/** Nonces with which an app asks for everything but the nodes, and for the nodes alone. */
const ONLY_CONFIG = 69420
const ONLY_NODES = 69421

type Shares = Pick<VirtualNodeOptions, 'sharesChannelKeys'>

/** A radio as one viewer sees it: what apps may read of its settings. */
export type ShownRadio = {
  channel(slot: number): Channel
  config(section: string): Config | null
  module(section: string): ModuleConfig | null
}

export function showRadio(parts: RadioParts, sight: Sight, { sharesChannelKeys }: Shares): ShownRadio {
  const isOpen = sight.viewer.permissions.configuration.read
  return {
    channel(slot) {
      const channel = parts.channels.get(slot)
      if (channel === undefined || !sight.canReadSlot(slot)) return emptyChannel(slot)
      return redactChannel(channel, sharesChannelKeys)
    },
    config(section) {
      const config = parts.configs.get(section)
      const shown = config === undefined ? null : redactConfig(config, isOpen)
      if (shown?.payloadVariant.case !== 'lora') return shown
      const { value } = shown.payloadVariant
      value.ignoreIncoming = value.ignoreIncoming.filter((nodeNum) => sight.seesNode(nodeNum))
      return shown
    },
    module(section) {
      const config = parts.modules.get(section)
      return config === undefined ? null : redactModuleConfig(config, isOpen, sharesChannelKeys)
    },
  }
}

/** The answer to `want_config_id`: payloads of frames, in the order of PhoneAPI.cpp of the firmware. */
export function* handshakeFor(
  parts: RadioParts,
  sight: Sight,
  options: Shares,
  nonce: number,
): Generator<Uint8Array, void> {
  for (const variant of listVariants(parts, sight, options, nonce)) yield encodeFromRadio(variant)
}

function* listVariants(
  parts: RadioParts,
  sight: Sight,
  options: Shares,
  nonce: number,
): Generator<FromRadioVariant, void> {
  const { myInfo, deviceUi, metadata, regionPresets } = parts
  const own = myInfo.myNodeNum
  // As they are now: packets that arrive meanwhile follow as packets. Each is prepared when the app has taken those before.
  const nodes = [...parts.nodes.values()].filter(({ info }) => isShown(info.num, sight, own))
  const ownNode = parts.nodes.get(own)
  const isWhole = nonce !== ONLY_NODES
  const shown = showRadio(parts, sight, options)
  if (isWhole) {
    // It identifies the device: nothing for an anonymous caller.
    const deviceId = sight.viewer.user === null ? new Uint8Array(0) : myInfo.deviceId
    const value = create(MyNodeInfoSchema, { ...myInfo, nodedbCount: nodes.length, deviceId })
    yield { case: 'myInfo', value }
    if (deviceUi !== null) yield { case: 'deviceuiConfig', value: redactDeviceUi(deviceUi) }
  }
  if (ownNode !== undefined) yield { case: 'nodeInfo', value: showNode(ownNode, sight, own) }
  if (isWhole) {
    if (metadata !== null) yield { case: 'metadata', value: metadata }
    if (regionPresets !== null) yield { case: 'regionPresets', value: regionPresets }
    for (let slot = 0; slot < RADIO_CHANNELS; slot += 1) yield { case: 'channel', value: shown.channel(slot) }
    yield* sectionsOf(ConfigSchema.fields, shown.config, 'config')
    yield* sectionsOf(ModuleConfigSchema.fields, shown.module, 'moduleConfig')
  }
  const others = nonce === ONLY_CONFIG ? [] : nodes.filter((node) => node !== ownNode)
  for (const node of others) yield { case: 'nodeInfo', value: showNode(node, sight, own) }
  if (isWhole && sight.viewer.permissions.configuration.read) {
    for (const value of parts.files) yield { case: 'fileInfo', value }
  }
  yield { case: 'configCompleteId', value: nonce }
}

/** In the order of their numbers, as the firmware sends them. */
function* sectionsOf<Case extends 'config' | 'moduleConfig', Value>(
  fields: readonly { readonly localName: string; readonly number: number }[],
  find: (section: string) => Value | null,
  name: Case,
): Generator<{ case: Case; value: Value }, void> {
  for (const { localName } of fields.toSorted((a, b) => a.number - b.number)) {
    const value = find(localName)
    if (value !== null) yield { case: name, value }
  }
}
