import { clone, create } from '@bufbuild/protobuf'
import {
  type Channel,
  Channel_Role,
  ChannelSchema,
  type ChannelSettings,
  ChannelSettingsSchema,
} from '../gen/channel_pb.ts'
import { type Config, ConfigSchema } from '../gen/config_pb.ts'
import { type DeviceUIConfig, DeviceUIConfigSchema } from '../gen/device_ui_pb.ts'
import { type ModuleConfig, ModuleConfigSchema } from '../gen/module_config_pb.ts'

/** What a radio itself shows in place of a password, and takes for the password that it has. */
export const KEPT_SECRET = 'sekrit'

/** A key of one byte is one of the keys that everybody knows. */
const KNOWN_KEY_BYTES = 1

const NOTHING = new Uint8Array(0)

const maskOf = (secret: string) => (secret === '' ? '' : KEPT_SECRET)

/** Without fields newer than our table: one might be a secret. */
function known<T extends { $unknown?: unknown }>(message: T): T {
  delete message.$unknown
  return message
}

/**
 * A section for apps, without its secrets; null for one that is not in our table. `isOpen` false: without the addresses
 * and names of networks and servers, too.
 */
export function redactConfig(config: Config, isOpen: boolean): Config | null {
  const copy = known(clone(ConfigSchema, config))
  const { payloadVariant: variant } = copy
  switch (variant.case) {
    case undefined:
      return null
    case 'security':
      known(variant.value).privateKey = NOTHING
      if (!isOpen) variant.value.adminKey = []
      return copy
    case 'network':
      if (!isOpen) return create(ConfigSchema, { payloadVariant: { case: 'network', value: {} } })
      known(variant.value).wifiPsk = maskOf(variant.value.wifiPsk)
      return copy
    case 'bluetooth':
      known(variant.value).fixedPin = 0
      return copy
    case 'deviceUi':
      known(variant.value)
      return copy
    default:
      return copy
  }
}

/** The same for a module. `sharesKeys`: with the keys of channels. */
export function redactModuleConfig(config: ModuleConfig, isOpen: boolean, sharesKeys: boolean): ModuleConfig | null {
  const copy = known(clone(ModuleConfigSchema, config))
  const { payloadVariant: variant } = copy
  switch (variant.case) {
    case undefined:
      return null
    case 'mqtt':
      if (!isOpen) return create(ModuleConfigSchema, { payloadVariant: { case: 'mqtt', value: {} } })
      known(variant.value).password = maskOf(variant.value.password)
      return copy
    case 'meshBeacon': {
      const beacon = known(variant.value)
      for (const settings of [beacon.broadcastOfferChannel, beacon.broadcastOnChannel]) {
        if (settings !== undefined) redactKey(settings, sharesKeys)
      }
      return copy
    }
    default:
      return copy
  }
}

/** A channel for apps; without `sharesKeys`, only a key that everybody knows is left. */
export function redactChannel(channel: Channel, sharesKeys: boolean): Channel {
  const copy = known(clone(ChannelSchema, channel))
  if (copy.settings !== undefined) redactKey(copy.settings, sharesKeys)
  return copy
}

function redactKey(settings: ChannelSettings, sharesKeys: boolean): void {
  known(settings)
  if (!sharesKeys && settings.psk.length > KNOWN_KEY_BYTES) settings.psk = NOTHING
}

/** A slot without a channel. */
export function emptyChannel(index: number): Channel {
  return create(ChannelSchema, { index, role: Channel_Role.DISABLED, settings: create(ChannelSettingsSchema) })
}

/** Its newer fields contain a PIN. */
export function redactDeviceUi(config: DeviceUIConfig): DeviceUIConfig {
  return known(clone(DeviceUIConfigSchema, config))
}

/**
 * A section that an app writes, with the secrets of the radio where the app got none. Null if the app may not write
 * that: another private key, or a password that would then be sent to another network or server.
 */
export function restoreConfig(written: Config, before: Config | undefined): Config | null {
  const copy = clone(ConfigSchema, written)
  const { payloadVariant: variant } = copy
  const { case: section, value: had } = before?.payloadVariant ?? { case: undefined }
  if (variant.case === 'security' && section === 'security') {
    const { privateKey } = variant.value
    if (privateKey.length > 0 && !isSame(privateKey, had.privateKey)) return null
    variant.value.privateKey = had.privateKey
    variant.value.publicKey = had.publicKey
    return copy
  }
  if (variant.case === 'network' && section === 'network') {
    if (variant.value.wifiPsk !== KEPT_SECRET) return copy
    if (had.wifiPsk !== '' && variant.value.wifiSsid !== had.wifiSsid) return null
    variant.value.wifiPsk = had.wifiPsk
    return copy
  }
  if (variant.case === 'bluetooth' && section === 'bluetooth') {
    if (variant.value.fixedPin === 0) variant.value.fixedPin = had.fixedPin
    return copy
  }
  return SECRET_SECTIONS.has(variant.case ?? '') ? null : copy
}

/** Sections that are only written over a known one. */
const SECRET_SECTIONS: ReadonlySet<string> = new Set(['security', 'network', 'bluetooth', 'mqtt'])

/** The same for a module. */
export function restoreModuleConfig(written: ModuleConfig, before: ModuleConfig | undefined): ModuleConfig | null {
  const copy = clone(ModuleConfigSchema, written)
  const { payloadVariant: variant } = copy
  const { case: section, value: had } = before?.payloadVariant ?? { case: undefined }
  if (variant.case !== 'mqtt') return copy
  if (section !== 'mqtt') return null
  if (variant.value.password !== KEPT_SECRET) return copy
  const isElsewhere = variant.value.address !== had.address || (had.tlsEnabled && !variant.value.tlsEnabled)
  if (had.password !== '' && isElsewhere) return null
  variant.value.password = had.password
  return copy
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at])
}
