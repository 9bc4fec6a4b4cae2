import type { ComponentChildren } from 'preact'
import type { PacketPage } from '../../../app/mesh/topology/packets.ts'
import { isRecord } from '../../api.ts'
import { dateTime, decimal, duration, humanize, modelName, plain } from '../../format.ts'
import { altitude, measure } from '../../measure.ts'
import { BROADCAST, nameOf } from '../../state/mesh/nodes.ts'
import { metricName } from './metric-name.ts'
import { decibels } from './snr.ts'
import { t } from '../../strings.ts'
import { measurementGroups } from '../../strings/mesh/measurements.ts'
import { unitOf } from '../../../shared/mesh/metric-units.ts'
import { isNameOf } from '../../../shared/names.ts'
import { packetFields, packetOrigins, packetTexts } from '../../strings/mesh/packets.ts'

type Packet = PacketPage['packets'][number]
type Fact = readonly [name: string, value: ComponentChildren]

/** What a packet says in a few words; null: its kind says it all, or its content may not be read. */
export function contentOf({ payload }: Packet): string | null {
  const { kind, ...content } = payload
  switch (kind) {
    case 'text':
    case 'rangetest':
      return textOf(content['text'])
    case 'nodeinfo':
      return isRecord(content['user']) ? textOf(content['user']['longName']) : null
    case 'waypoint':
      return isRecord(content['waypoint']) ? textOf(content['waypoint']['name']) : null
    case 'status':
      return textOf(content['status'])
    case 'telemetry':
      return groupOf(content['variant'])
    case 'routing':
      return typeof content['error'] === 'string' ? resultOf(content['error']) : null
    case 'traceroute':
      return content['isReply'] === undefined
        ? null
        : content['isReply'] === true
          ? packetTexts.reply
          : packetTexts.request
    case 'neighborinfo':
      return Array.isArray(content['neighbors']) ? t.neighbors.count(content['neighbors'].length) : null
    default:
      return null
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && plain(value) !== '' ? plain(value) : null
}

function groupOf(variant: unknown): string | null {
  const groups: Readonly<Record<string, string>> = measurementGroups
  return typeof variant === 'string' ? (groups[variant] ?? null) : null
}

function resultOf(error: string): string {
  return error === 'NONE' ? packetTexts.acknowledged : humanize(error)
}

/** How a packet arrived. */
export function arrivalOf({ rxSnr, hopsAway, viaMqtt }: Packet): string[] {
  return [
    hopsAway === null ? null : t.nodes.hopsAway(hopsAway),
    rxSnr === null ? null : decibels(rxSnr),
    viaMqtt ? t.nodes.mqtt : null,
  ].filter((part) => part !== null)
}

/** The receiver by its name. */
export function receiverOf({ toNodeNum, toNodeId }: Packet): string {
  return toNodeNum === BROADCAST ? packetTexts.broadcast : nameOf(toNodeNum, toNodeId)
}

/** Everything that is known about a packet besides its content. */
export function factsOf(packet: Packet): Fact[] {
  const { source, gateway, channel, port, rxRssi, hopLimit, packetId, pkiEncrypted, replayed, signed } = packet
  const yes = (is: boolean) => (is ? t.common.yes : null)
  return [
    [t.common.when, dateTime(packet.timestamp)],
    [packetTexts.to, receiverOf(packet)],
    [packetTexts.signal, arrivalOf(packet).join(' · ')],
    ['RSSI', rxRssi === null ? null : `${decimal(rxRssi)} dBm`],
    [packetFields.source, source === null ? null : plain(source)],
    [packetFields.gateway, gateway === null ? null : nodeText(gateway)],
    [packetFields.channel, port === null ? null : channelText(channel)],
    [packetFields.hopLimit, String(hopLimit)],
    [packetFields.packetId, String(packetId)],
    [packetFields.pkiEncrypted, yes(pkiEncrypted)],
    [packetFields.replayed, yes(replayed)],
    [t.nodes.signed, yes(signed)],
  ]
}

/** Numbers above those of a radio's slots are derived by the service, and say nothing to people. */
const channelText = (channel: number): string | null => (channel < 8 ? String(channel) : null)

/** The decoded content, a line for each value. */
export function contentFacts({ payload }: Packet): Fact[] {
  const { kind: _kind, ...content } = payload
  return Object.entries(content).flatMap(([name, value]) => listFacts(name, value))
}

/** Objects whose own name says nothing: their fields are listed in their place. */
const WRAPPERS: ReadonlySet<string> = new Set([
  'fix',
  'user',
  'metrics',
  'waypoint',
  'route',
  'report',
  'storeForward',
  'replay',
])
/** What is in other fields, too. */
const SAID: ReadonlySet<string> = new Set(['errorCode', 'isNameAltered', 'id', 'bytes'])
const TIMES: ReadonlySet<string> = new Set(['time', 'sentTime', 'expiresAt'])
const NODES: ReadonlySet<string> = new Set(['nodeNum', 'lockedTo'])
const ENUMS: ReadonlySet<string> = new Set(['role', 'region', 'modemPreset', 'preset', 'request'])

function listFacts(name: string, value: unknown): Fact[] {
  if (value === null || value === undefined || value === '' || SAID.has(name)) return []
  if (isRecord(value) && WRAPPERS.has(name)) {
    return Object.entries(value).flatMap(([inner, each]) => listFacts(inner, each))
  }
  const shown = valueOf(name, value)
  return shown === null ? [] : [[labelOf(name), shown]]
}

function labelOf(name: string): string {
  const labels: Readonly<Record<string, string>> = packetFields
  return labels[name] ?? metricName(name)
}

function valueOf(name: string, value: unknown): string | null {
  if (Array.isArray(value)) return value.length === 0 ? null : value.map((each) => itemOf(name, each)).join(', ')
  if (typeof value === 'boolean') return value ? t.common.yes : t.common.no
  if (typeof value === 'number') return numberOf(name, value)
  if (typeof value !== 'string') return isRecord(value) ? null : String(value)
  if (name === 'variant') return groupOf(value) ?? value
  if (name === 'error') return resultOf(value)
  if (name === 'origin') return isNameOf(packetOrigins, value) ? packetOrigins[value] : value
  if (name === 'hwModel') return modelName(value)
  return ENUMS.has(name) ? humanize(value) : plain(value)
}

/** A hop of a route, its signal, or a neighbour with its signal. */
function itemOf(name: string, value: unknown): string {
  if (isRecord(value)) {
    const { nodeNum, snr } = value
    return `${nodeText(typeof nodeNum === 'number' ? nodeNum : null)} ${typeof snr === 'number' ? decibels(snr) : ''}`
  }
  const number = typeof value === 'number' ? value : null
  return name.startsWith('snr') ? decibels(number) : nodeText(number)
}

function numberOf(name: string, value: number): string {
  if (TIMES.has(name)) return dateTime(value)
  if (NODES.has(name)) return nodeText(value)
  if (name === 'latitude' || name === 'longitude') return `${decimal(value, 5)}°`
  if (name === 'altitude') return altitude(value)
  if (name.endsWith('uptimeSeconds')) return duration(value)
  if (name === 'deviceMetrics.batteryLevel' && value > 100) return t.nodes.powerHelp
  return measure(value, unitOf(name), 2)
}

function nodeText(nodeNum: number | null): string {
  if (nodeNum === null) return t.routes.silent
  if (nodeNum === BROADCAST) return packetTexts.broadcast
  return nameOf(nodeNum, `!${nodeNum.toString(16).padStart(8, '0')}`)
}
