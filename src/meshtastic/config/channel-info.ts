import { create } from '@bufbuild/protobuf'
import { enumName } from '../enum-name.ts'
import { type Channel, Channel_RoleSchema, type ChannelSettings, ChannelSettingsSchema } from '../gen/channel_pb.ts'

/** An entry of the radio's channel table, without its key. */
export type ChannelInfo = {
  /** 0 to 7. */
  readonly index: number
  /** `DISABLED`, `PRIMARY`, `SECONDARY`. */
  readonly role: string
  /** Empty: the channel has the name of the modem preset. */
  readonly name: string
  /** Bytes: 0 no encryption, 1 a well-known key, 16 or 32 a private key. */
  readonly keySize: number
  readonly hasKey: boolean
  readonly uplinkEnabled: boolean
  readonly downlinkEnabled: boolean
  /** Precision in bits of positions shared on the channel: 0 none, 32 exact. */
  readonly positionPrecision: number
  /** The result of `identifyChannel`; null if the channel is off or not known yet. */
  readonly identity: string | null
}

export function describeChannel(channel: Channel, identity: string | null): ChannelInfo {
  const settings: ChannelSettings = channel.settings ?? create(ChannelSettingsSchema)
  const { psk } = settings
  return {
    index: channel.index,
    role: enumName(Channel_RoleSchema, channel.role),
    name: settings.name,
    keySize: psk.length,
    // A single byte is an index into well-known keys; 0 means "none".
    hasKey: psk.length > 1 || (psk[0] ?? 0) > 0,
    uplinkEnabled: settings.uplinkEnabled,
    downlinkEnabled: settings.downlinkEnabled,
    positionPrecision: settings.moduleSettings?.positionPrecision ?? 0,
    identity,
  }
}
