import { clone, create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { AdminMessage_ConfigType, AdminMessage_ModuleConfigType } from '../../../src/meshtastic/gen/admin_pb.ts'
import { type AdminMessage, AdminMessageSchema } from '../../../src/meshtastic/gen/admin_pb.ts'
import { ConfigSchema } from '../../../src/meshtastic/gen/config_pb.ts'
import { ModuleConfigSchema } from '../../../src/meshtastic/gen/module_config_pb.ts'
import type { MeshPacket } from '../../../src/meshtastic/gen/packet_pb.ts'
import { Routing_Error, RoutingSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import type { Clock } from '../../../src/node/clock.ts'
import { type ConfigDevice, copySettings, makeSettings, type Settings, type SettingsInit } from './config-device.ts'
import { OWN } from './config-service.ts'
import { fromRadio } from './device.ts'

export const REMOTE = 0xa0cb0042
export const REMOTE_KEY = Uint8Array.from({ length: 32 }, (_, index) => 100 + index)

/** How the node behaves. */
export type RemoteManners = {
  firmware: string
  /** Our radio's key is among its admin keys. */
  isAdmin: boolean
  /** It knows our radio's key. */
  knowsUs: boolean
  isLocked: boolean
  /** The channel on which it accepts administration without PKC. */
  adminChannel: number | null
  /** The next packets to it that get lost. */
  losesNext: number
  /** Loses a packet, by what is in it. */
  loses: ((message: AdminMessage) => boolean) | null
  /** It does not hear us any more after a restart. */
  isGoneAfterRestart: boolean
  /** Does not restart after it has saved. */
  staysUp: boolean
  /** Takes a setting, and keeps its own. */
  ignoresSets: boolean
  onSave: ((settings: Settings) => void) | null
}

/**
 * A node that a ConfigDevice reaches over the mesh, as in AdminModule.cpp of firmware 2.8: who may administer it, the
 * passkey of a session, edits that only saving or a restart ends, and what is acknowledged. A change that asks for a
 * response is never answered over PKC (meshtastic/firmware#10443); one that does not is acknowledged, even if it is
 * refused.
 */
export type RemoteNode = {
  readonly manners: RemoteManners
  /** What it took as authorised, in order. */
  readonly admin: readonly AdminMessage[]
  readonly packets: readonly MeshPacket[]
  readonly active: Settings
  readonly saved: Settings
  starts(): number
  isEditing(): boolean
  /** Somebody else has asked for a new passkey. */
  renewSession(): void
  /** A packet in its name, from somebody without its key. */
  forge(requestId: number, message: AdminMessage): void
  /** The same settings as saved, changed at the node itself. */
  edit(change: (settings: Settings) => void): void
}

const SESSION_RENEWED_MS = 150_000
const SESSION_VALID_MS = 300_000
const RESTART_AFTER_MS = 7000
const START_MS = 20_000
const WITHHELD = 'sekrit'

export function addRemoteNode(device: ConfigDevice, clock: Clock, init: SettingsInit): RemoteNode {
  const manners: RemoteManners = {
    firmware: '2.8.0.test',
    isAdmin: true,
    knowsUs: true,
    isLocked: false,
    adminChannel: null,
    losesNext: 0,
    loses: null,
    isGoneAfterRestart: false,
    staysUp: false,
    ignoresSets: false,
    onSave: null,
  }
  const admin: AdminMessage[] = []
  const packets: MeshPacket[] = []
  let saved = makeSettings(init)
  let active = copySettings(saved)
  let isEditing = false
  let starts = 1
  let isUp = true
  let session: { key: Uint8Array; at: number } | null = null
  let issued = 0
  let sentId = 5000

  const toUs = (value: object) =>
    device.send(fromRadio({ case: 'packet', value: { id: ++sentId, to: OWN, hopStart: 3, hopLimit: 2, ...value } }))
  const routing = (from: number, requestId: number, error: Routing_Error) => {
    const message = create(RoutingSchema, { variant: { case: 'errorReason', value: error } })
    const data = { portnum: PortNum.ROUTING_APP, payload: toBinary(RoutingSchema, message), requestId }
    const signal = from === OWN ? {} : { rxRssi: -80 }
    toUs({ from, ...signal, payloadVariant: { case: 'decoded', value: data } })
  }
  const passkey = () => {
    if (session === null || clock.now() - session.at > SESSION_RENEWED_MS) {
      issued += 1
      session = { key: Uint8Array.of(starts, issued, 3, 4, 5, 6, 7, 8), at: clock.now() }
    }
    return session.key
  }
  const isSession = (key: Uint8Array) =>
    session !== null && clock.now() - session.at <= SESSION_VALID_MS && Buffer.compare(key, session.key) === 0
  const answer = (packet: MeshPacket, payloadVariant: AdminMessage['payloadVariant']) => {
    const message = create(AdminMessageSchema, { payloadVariant, sessionPasskey: passkey() })
    const payload = toBinary(AdminMessageSchema, message)
    const data = { portnum: PortNum.ADMIN_APP, payload, requestId: packet.id }
    const { channel, pkiEncrypted } = packet
    const proof = pkiEncrypted ? { pkiEncrypted, publicKey: REMOTE_KEY } : { channel }
    toUs({ from: REMOTE, rxRssi: -80, ...proof, payloadVariant: { case: 'decoded', value: data } })
  }
  const restart = () => {
    active = copySettings(saved)
    isEditing = false
    session = null
    starts += 1
    isUp = false
    if (!manners.isGoneAfterRestart) clock.after(START_MS, () => (isUp = true))
  }
  const save = () => {
    isEditing = false
    saved = copySettings(active)
    manners.onSave?.(saved)
    if (!manners.staysUp) clock.after(RESTART_AFTER_MS, restart)
  }
  const isNew = () => manners.firmware.startsWith('2.8')
  const read = ({ payloadVariant: { case: variant, value } }: AdminMessage): AdminMessage['payloadVariant'] | null => {
    if (variant === 'getOwnerRequest') return { case: 'getOwnerResponse', value: active.owner }
    if (variant === 'getChannelRequest') {
      const found = active.channels.get(value - 1)
      return found === undefined ? null : { case: 'getChannelResponse', value: found }
    }
    if (variant === 'getDeviceMetadataRequest') {
      const metadata = create(AdminMessageSchema, {
        payloadVariant: { case: 'getDeviceMetadataResponse', value: { firmwareVersion: manners.firmware } },
      })
      return metadata.payloadVariant
    }
    if (variant === 'getConfigRequest') {
      const found = active.configs.get(CONFIGS[value] ?? '')
      const config = found === undefined ? create(ConfigSchema) : clone(ConfigSchema, found)
      const { payloadVariant: inner } = config
      if (inner.case === 'network' && isNew()) inner.value.wifiPsk = WITHHELD
      if (inner.case === 'security' && isNew()) inner.value.privateKey = new Uint8Array(0)
      return { case: 'getConfigResponse', value: config }
    }
    if (variant === 'getModuleConfigRequest') {
      const found = active.modules.get(MODULES[value] ?? '')
      const config = found === undefined ? create(ModuleConfigSchema) : clone(ModuleConfigSchema, found)
      const { payloadVariant: inner } = config
      if (inner.case === 'mqtt' && isNew()) inner.value.password = WITHHELD
      return { case: 'getModuleConfigResponse', value: config }
    }
    return null
  }
  const apply = ({ payloadVariant: { case: variant, value } }: AdminMessage) => {
    if (variant === 'beginEditSettings') isEditing = true
    else if (variant === 'commitEditSettings') save()
    else if (variant === 'rebootSeconds') clock.after(value * 1000, restart)
    else if (!manners.ignoresSets) set(active, { case: variant, value })
  }
  const hear = (packet: MeshPacket, message: AdminMessage, wantResponse: boolean) => {
    const refuse = (error: Routing_Error) => routing(REMOTE, packet.id, wantResponse ? error : Routing_Error.NONE)
    if (!manners.knowsUs) return routing(REMOTE, packet.id, Routing_Error.PKI_UNKNOWN_PUBKEY)
    if (manners.isLocked) return refuse(Routing_Error.NO_RESPONSE)
    const isOnChannel = !packet.pkiEncrypted && packet.channel === manners.adminChannel
    if (!packet.pkiEncrypted && !isOnChannel) return refuse(Routing_Error.NOT_AUTHORIZED)
    if (!isOnChannel && !manners.isAdmin) return refuse(Routing_Error.ADMIN_PUBLIC_KEY_UNAUTHORIZED)
    const isGet = message.payloadVariant.case?.startsWith('get') === true
    if (!isGet && !isSession(message.sessionPasskey)) return refuse(Routing_Error.ADMIN_BAD_SESSION_KEY)
    admin.push(message)
    if (isGet) {
      const found = read(message)
      if (found === null) return refuse(Routing_Error.BAD_REQUEST)
      return wantResponse ? answer(packet, found) : routing(REMOTE, packet.id, Routing_Error.NONE)
    }
    apply(message)
    if (!wantResponse) routing(REMOTE, packet.id, Routing_Error.NONE)
  }
  device.manners.onOther = (packet) => {
    const data = packet.payloadVariant.case === 'decoded' ? packet.payloadVariant.value : null
    if (packet.to !== REMOTE || data?.portnum !== PortNum.ADMIN_APP) return
    packets.push(packet)
    if (packet.publicKey.length > 0 && Buffer.compare(packet.publicKey, REMOTE_KEY) !== 0) {
      return routing(OWN, packet.id, Routing_Error.PKI_FAILED)
    }
    // A node on the way repeats it.
    routing(OWN, packet.id, Routing_Error.NONE)
    const message = fromBinary(AdminMessageSchema, data.payload)
    const isLost = manners.losesNext > 0 || manners.loses?.(message) === true
    if (manners.losesNext > 0) manners.losesNext -= 1
    if (isLost || !isUp) return routing(OWN, packet.id, Routing_Error.MAX_RETRANSMIT)
    hear(packet, message, data.wantResponse)
  }
  return {
    manners,
    admin,
    packets,
    get active() {
      return active
    },
    get saved() {
      return saved
    },
    starts: () => starts,
    isEditing: () => isEditing,
    renewSession() {
      session = null
      passkey()
    },
    forge(requestId, message) {
      const data = { portnum: PortNum.ADMIN_APP, payload: toBinary(AdminMessageSchema, message), requestId }
      toUs({ from: REMOTE, rxRssi: -80, payloadVariant: { case: 'decoded', value: data } })
    },
    edit(change) {
      change(saved)
      change(active)
    },
  }
}

/** A set replaces the whole section; a password that was not shown stays as it is. */
function set(settings: Settings, { case: variant, value }: { case: string | undefined; value: unknown }): void {
  const given = Object(value)
  const inner = Object(given.payloadVariant)
  if (variant === 'setOwner') settings.owner = given
  if (variant === 'setChannel') settings.channels.set(given.index, given)
  if (variant === 'setConfig') {
    const before = Object(settings.configs.get(inner.case)?.payloadVariant.value)
    if (inner.case === 'network' && inner.value.wifiPsk === WITHHELD) inner.value.wifiPsk = before.wifiPsk
    if (inner.case === 'security' && inner.value.privateKey.length === 0) inner.value.privateKey = before.privateKey
    settings.configs.set(inner.case, given)
  }
  if (variant === 'setModuleConfig') {
    const before = Object(settings.modules.get(inner.case)?.payloadVariant.value)
    if (inner.case === 'mqtt' && inner.value.password === WITHHELD) inner.value.password = before.password
    settings.modules.set(inner.case, given)
  }
}

const CONFIGS = namesBy(AdminMessage_ConfigType)
const MODULES: Readonly<Record<number, string>> = { [AdminMessage_ModuleConfigType.MQTT_CONFIG]: 'mqtt' }

/** `DEVICE_CONFIG` is `device`. */
function namesBy(types: Readonly<Record<string, number>>): Readonly<Record<number, string>> {
  return Object.fromEntries(
    Object.entries(types).map(([name, value]) => [value, name.replace('_CONFIG', '').toLowerCase()]),
  )
}
