import type { PositionFix } from '../../../../meshtastic/payload/position.ts'
import type { Payload } from '../../../../meshtastic/payload/payload.ts'
import type { Packet } from '../../../../meshtastic/packet.ts'
import type { NodeUser } from '../../../../meshtastic/payload/user.ts'
import type { KnownSource, Source } from '../../radios/source-table.ts'
import { isOwnKind } from '../../../../shared/mesh/link-kinds.ts'

/** The sources that speak for our own radios. */
export type OwnRadios = {
  isOwn(nodeNum: number): boolean
  /** This process has radios, and only collectors claim the node as their radio. */
  isOnlyDelivered(nodeNum: number): boolean
  /** Whether this source's report about the node comes from the node's own connection. */
  speaksFor(source: string, nodeNum: number): boolean
}

/**
 * Each source speaks for its own node. If this process has radios, a collector's claim to one of their numbers does not
 * count. `hasRadios` false: there are none, so every claim counts.
 */
export function ownRadios(sources: Iterable<KnownSource>, hasRadios: boolean): OwnRadios {
  const speakers = new Map<number, Source[]>()
  let hasEars = false
  for (const { kind, name, localNodeNum } of sources) {
    hasEars ||= hasRadios && isOwnKind(kind)
    if (localNodeNum !== null) speakers.set(localNodeNum, [...(speakers.get(localNodeNum) ?? []), { kind, name }])
  }
  return {
    isOwn: (nodeNum) => speakers.has(nodeNum),
    isOnlyDelivered(nodeNum) {
      const all = speakers.get(nodeNum) ?? []
      return hasEars && all.length > 0 && !all.some(({ kind }) => isOwnKind(kind))
    },
    speaksFor(name, nodeNum) {
      const all = speakers.get(nodeNum) ?? []
      const direct = hasRadios ? all.filter(({ kind }) => isOwnKind(kind)) : []
      return (direct.length > 0 ? direct : all).some((source) => source.name === name)
    },
  }
}

/** Data that our radio reported about itself. */
type Reported = {
  readonly longName: string | null
  readonly shortName: string | null
  readonly publicKey: string | null
  readonly latitude: number | null
  readonly longitude: number | null
}

/**
 * Whether a packet that arrived from elsewhere in our radio's name contradicts what the radio itself reported. Copies
 * of its own broadcasts, which other radios hear and gateways publish, do not. `null` for measurements, which cannot be
 * compared.
 */
export function contradicts({ payload }: Packet, reported: Reported | null): boolean | null {
  switch (payload.kind) {
    case 'nodeinfo':
      return isOtherUser(payload.user, reported)
    case 'mapreport':
      return isOtherUser({ ...payload.report, publicKey: null }, reported)
    case 'position':
      return payload.fix !== null && isElsewhere(payload.fix, reported)
    case 'text':
      return true
    case 'storeforward':
      return payload.storeForward.replay !== null
    case 'telemetry':
      return payload.metrics.length === 0 ? false : null
    default:
      return false
  }
}

function isOtherUser(
  { longName, shortName, publicKey }: Pick<NodeUser, 'longName' | 'shortName' | 'publicKey'>,
  reported: Reported | null,
): boolean {
  const differs = (said: string | null, known: string | null) => said !== null && said !== known
  return (
    differs(longName, reported?.longName ?? null) ||
    differs(shortName, reported?.shortName ?? null) ||
    differs(publicKey, reported?.publicKey ?? null)
  )
}

/** About 100 m: the position of a receiver at rest varies. */
const REST_DEGREES = 0.001

/** A radio broadcasts its position rounded to a cell, but reports the exact one to us. */
export function isElsewhere(
  { latitude, longitude, precisionBits }: Pick<PositionFix, 'latitude' | 'longitude' | 'precisionBits'>,
  reported: Pick<Reported, 'latitude' | 'longitude'> | null,
): boolean {
  if (reported === null || reported.latitude === null || reported.longitude === null) return true
  const cell = precisionBits === null ? 0 : 2 ** (32 - precisionBits) * 1e-7
  const most = Math.min(cell, 180) + REST_DEGREES
  const east = Math.abs(longitude - reported.longitude)
  return Math.abs(latitude - reported.latitude) > most || Math.min(east, 360 - east) > most
}

/**
 * The subject of a suspicion, so that the same report by the radio itself lifts it: its names and key, or else the
 * packet.
 */
export function claimOf({ id, payload }: { readonly id: number; readonly payload: Payload }): string {
  return payload.kind === 'nodeinfo' ? claimOfUser(payload.user) : `packet ${id}`
}

export function claimOfUser({ longName, shortName, publicKey }: NodeUser): string {
  return `user ${JSON.stringify([longName, shortName, publicKey])}`
}
