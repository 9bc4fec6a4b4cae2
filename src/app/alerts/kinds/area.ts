import { maySee } from '../rights.ts'
import type { AlertRuleOf } from '../rules/rule.ts'
import { watcher } from '../rules/watched.ts'
import type { WatchingRule } from '../rules/watch-list.ts'
import type { Place, World, WorldNode } from '../world.ts'
import { type Finding, nodeSubject, type OpenAlerts } from './finding.ts'

const EARTH_METRES = 6_371_008.8
const radians = (degrees: number) => (degrees * Math.PI) / 180

/** Along a great circle, in metres. */
export function distanceMetres(a: Place, b: Place): number {
  const half = (x: number) => Math.sin(x / 2) ** 2
  const h =
    half(radians(b.latitude - a.latitude)) +
    Math.cos(radians(a.latitude)) * Math.cos(radians(b.latitude)) * half(radians(b.longitude - a.longitude))
  return 2 * EARTH_METRES * Math.asin(Math.min(1, Math.sqrt(h)))
}

type Shape = NonNullable<AlertRuleOf<'area'>['shape']>

/** Whether a position is inside a shape; on the border either result is possible. */
export function isInside(shape: Shape, place: Place): boolean {
  if (shape.kind === 'circle') return distanceMetres(shape, place) <= shape.metres
  let inside = false
  shape.points.forEach(([latitude, longitude], index) => {
    const [otherLatitude, otherLongitude] = shape.points.at(index - 1) ?? [latitude, longitude]
    if (latitude > place.latitude === otherLatitude > place.latitude) return
    const crossing =
      ((otherLongitude - longitude) * (place.latitude - latitude)) / (otherLatitude - latitude) + longitude
    if (place.longitude < crossing) inside = !inside
  })
  return inside
}

/** How far from its reported position a node with a rough position may be, in metres. */
export function roughness(precisionBits: number | null): number {
  if (precisionBits === null || precisionBits >= 32) return 0
  return radians(2 ** (32 - precisionBits) * 1e-7) * EARTH_METRES
}

/** Whether the condition holds for a node at this position. `anchor`: its position when the rule began to watch it. */
export function isSo(rule: AlertRuleOf<'area'>, place: Place, anchor: Place | null, rough = 0): boolean {
  if (rule.when === 'moves') return anchor !== null && distanceMetres(anchor, place) - rough > (rule.metres ?? 0)
  return rule.shape !== null && isInside(rule.shape, place) === (rule.when === 'enters')
}

/** An event is a change: a node that is first seen inside the area has not entered it. */
export function findInArea(watching: WatchingRule<'area'>, world: World, _open: OpenAlerts): Finding[] {
  const { rule, id } = watching
  const anchors = world.anchors.get(id)
  return placed(watching, world).flatMap(({ node, place }) => {
    const anchor = anchors?.get(node.nodeNum)
    if (anchor === undefined || !isSo(rule, place, anchor, roughness(node.precisionBits))) return []
    const { nodeNum } = node
    const what = { enters: 'entered the area', leaves: 'left the area', moves: `moved more than ${rule.metres} m` }[
      rule.when
    ]
    const key = `${nodeNum}@${world.now}`
    return [
      {
        subject: nodeSubject(nodeNum),
        key,
        nodeNum,
        channel: node.positionChannel,
        since: world.now,
        forMs: 0,
        isKnown: true,
        what: `${node.name} ${what}`,
      },
    ]
  })
}

/** Nodes whose position becomes the reference of the rule: the first one seen, before the condition holds. */
export function newAnchors(
  watching: WatchingRule<'area'>,
  world: World,
): { ruleId: number; nodeNum: number; latitude: number; longitude: number }[] {
  const known = world.anchors.get(watching.id)
  return placed(watching, world).flatMap(({ node: { nodeNum }, place }) =>
    known?.has(nodeNum) === true || isSo(watching.rule, place, null)
      ? []
      : [{ ruleId: watching.id, nodeNum, ...place }],
  )
}

function placed({ rule, owner }: WatchingRule<'area'>, { nodes }: World): { node: WorldNode; place: Place }[] {
  const isWatched = watcher(rule.nodes)
  return nodes.flatMap((node) => {
    const { latitude, longitude, positionChannel: channel } = node
    if (latitude === null || longitude === null || !isWatched(node)) return []
    return maySee(owner, 'area', { channel, direct: false }) ? [{ node, place: { latitude, longitude } }] : []
  })
}
