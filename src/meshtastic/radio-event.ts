import type { Metadata, NodeFacts, RadioFact } from './radio-fact.ts'
import { parseDeviceTime } from './device-time.ts'
import { enumName } from './enum-name.ts'
import { Config_DeviceConfig_RoleSchema } from './gen/config_pb.ts'
import { HardwareModel, HardwareModelSchema } from './gen/hardware_pb.ts'
import type { NodeInfo } from './gen/node_pb.ts'
import {
  type ClientNotification,
  type DeviceMetadata,
  type FromRadio,
  type LogRecord_Level,
  LogRecord_LevelSchema,
} from './gen/stream_pb.ts'
import { decodePacket } from './packet.ts'
import { refuseImpossible } from './plausible.ts'
import { decodePosition } from './payload/position.ts'
import { describeChannel } from './config/channel-info.ts'
import { describeConfig, describeModuleConfig, type SettingsSection } from './config/settings.ts'
import { listDeviceMetrics } from './payload/telemetry.ts'
import { decodeUser } from './payload/user.ts'

/**
 * A radio's report, ready to be stored: no keys, no passwords. `receivedAt` is the server's clock, in milliseconds.
 * `refused`: fields that were left out because no radio can send their values.
 */
export type RadioEvent = { readonly receivedAt: number; readonly refused?: readonly string[] } & RadioFact

/** `replayed` is the result of `createReplayDetector` for this message. Never throws. */
export function toRadioEvent(message: FromRadio, receivedAt: number, replayed: boolean): RadioEvent {
  const { fact, refused } = refuseImpossible(toFact(message, receivedAt, replayed))
  return refused.length === 0 ? { receivedAt, ...fact } : { receivedAt, refused, ...fact }
}

function toFact(message: FromRadio, now: number, replayed: boolean): RadioFact {
  const variant = message.payloadVariant
  switch (variant.case) {
    case 'packet':
      return { type: 'packet', packet: decodePacket(variant.value, now), replayed }
    case 'myInfo': {
      const { myNodeNum: nodeNum, nodedbCount, rebootCount } = variant.value
      return { type: 'my-info', nodeNum, nodedbCount, rebootCount: rebootCount || null }
    }
    case 'nodeInfo':
      return { type: 'node-info', node: decodeNode(variant.value, now) }
    case 'metadata':
      return { type: 'metadata', metadata: decodeMetadata(variant.value) }
    case 'channel':
      return { type: 'channel', channel: describeChannel(variant.value, null) }
    case 'config':
      return toSettings(describeConfig(variant.value), variant.case)
    case 'moduleConfig':
      return toSettings(describeModuleConfig(variant.value), variant.case)
    case 'configCompleteId':
      return { type: 'config-complete', nonce: variant.value }
    case 'queueStatus': {
      const { free, maxlen, res, meshPacketId } = variant.value
      return { type: 'queue-status', free, maxlen, result: res, packetId: meshPacketId || null }
    }
    case 'rebooted':
      return { type: 'rebooted' }
    case 'clientNotification':
      return decodeNotification(variant.value)
    case 'logRecord': {
      const { level, source, message: text } = variant.value
      return { type: 'log', level: levelName(level), source, message: text }
    }
    default:
      return { type: 'other', variant: variant.case ?? null }
  }
}

function toSettings(settings: SettingsSection | null, variant: string): RadioFact {
  return settings === null ? { type: 'other', variant } : { type: 'settings', settings }
}

/** The protocol allows 400 bytes. */
const MAX_NOTICE = 400

function decodeNotification({ level, message, replyId }: ClientNotification): RadioFact {
  // oxlint-disable-next-line no-control-regex
  const text = message.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\s]+/g, ' ').trim()
  return {
    type: 'notification',
    level: levelName(level),
    message: text.slice(0, MAX_NOTICE),
    packetId: replyId || null,
  }
}

function levelName(level: LogRecord_Level): string {
  return enumName(LogRecord_LevelSchema, level)
}

function decodeNode(node: NodeInfo, now: number): NodeFacts {
  const hopsAway = node.hopsAway ?? null
  return {
    nodeNum: node.num,
    user: node.user === undefined ? null : decodeUser(node.user),
    fix: node.position === undefined ? null : decodePosition(node.position, now),
    metrics: node.deviceMetrics === undefined ? [] : listDeviceMetrics(node.deviceMetrics),
    snr: hopsAway === 0 && node.snr !== 0 && Number.isFinite(node.snr) ? node.snr : null,
    hopsAway,
    lastHeard: parseDeviceTime(node.lastHeard, now),
    channel: node.channel,
    viaMqtt: node.viaMqtt,
    isFavorite: node.isFavorite,
    isIgnored: node.isIgnored,
    isMuted: node.isMuted,
    hasSigned: node.hasXeddsaSigned,
  }
}

function decodeMetadata(metadata: DeviceMetadata): Metadata {
  return {
    firmwareVersion: metadata.firmwareVersion || null,
    hwModel: metadata.hwModel === HardwareModel.UNSET ? null : enumName(HardwareModelSchema, metadata.hwModel),
    role: enumName(Config_DeviceConfig_RoleSchema, metadata.role),
    hasWifi: metadata.hasWifi,
    hasBluetooth: metadata.hasBluetooth,
    hasEthernet: metadata.hasEthernet,
    hasPkc: metadata.hasPKC,
  }
}
