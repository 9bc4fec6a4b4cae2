import type { InferRequestType, InferResponseType } from 'hono/client'
import type { AlertKind } from '../../../shared/alerts/alert-kinds.ts'
import { api } from '../../api.ts'
import { duration } from '../../format.ts'
import { nameOf } from '../../state/mesh.ts'
import { alertTexts } from '../../strings/alerts.ts'

export type NewRule = InferRequestType<typeof api.alerts.rules.$post>['json']
export type ShownRule = InferResponseType<typeof api.alerts.rules.$get, 200>['rules'][number]
export type RuleOf<K extends AlertKind> = Extract<NewRule, { kind: K }>
export type Watched = RuleOf<'node_silent'>['nodes']

const ALL: Watched = { kind: 'all' }

/** The initial values of a rule of a kind. */
export function freshRule(kind: AlertKind, destinations: number[]): NewRule {
  const common = { name: '', destinations }
  switch (kind) {
    case 'node_silent':
      return { kind, ...common, nodes: { kind: 'favorites' }, afterMinutes: 120 }
    case 'metric':
      return {
        kind,
        ...common,
        nodes: ALL,
        metric: 'deviceMetrics.batteryLevel',
        is: 'below',
        limit: 20,
        hysteresis: 5,
        forMinutes: 30,
      }
    case 'node_restarted':
    case 'key':
      return { kind, ...common, nodes: ALL }
    case 'area':
      return { kind, ...common, nodes: ALL, when: 'moves', metres: 500 }
    case 'message':
      return { kind, ...common, direct: true, channels: 'all' }
    case 'link':
      return { kind, ...common, afterMinutes: 10 }
    case 'backup':
      return { kind, ...common, afterHours: 48 }
    case 'node_new':
    case 'sign_in':
      return { kind, ...common }
    default:
      return kind satisfies never
  }
}

/** The most common rules. */
export const PRESETS: Readonly<Record<keyof typeof alertTexts.presets, (destinations: number[]) => NewRule>> = {
  repeaters: (destinations) => ({
    kind: 'node_silent',
    name: alertTexts.presets.repeaters,
    destinations,
    nodes: { kind: 'role', roles: ['ROUTER', 'ROUTER_LATE', 'REPEATER'] },
    afterMinutes: 240,
  }),
  battery: (destinations) => ({ ...freshRule('metric', destinations), name: alertTexts.presets.battery }),
  direct: (destinations) => ({
    kind: 'message',
    name: alertTexts.presets.direct,
    destinations,
    direct: true,
    channels: [],
  }),
  backups: (destinations) => ({ ...freshRule('backup', destinations), name: alertTexts.presets.backups }),
}

function who(nodes: Watched): string {
  switch (nodes.kind) {
    case 'all':
      return 'a node'
    case 'favorites':
      return 'a favourite'
    case 'own':
      return 'an own radio'
    case 'role':
      return `a node with the role ${nodes.roles.join(' or ')}`
    case 'list':
      return nodes.nodes.slice(0, 3).map(nameOfNode).join(' or ') + (nodes.nodes.length > 3 ? ' or …' : '')
    default:
      return nodes satisfies never
  }
}

const nameOfNode = (node: number | string) =>
  typeof node === 'number' ? nameOf(node, `!${node.toString(16).padStart(8, '0')}`) : node

/** A rule as a sentence. */
export function sentence(rule: NewRule): string {
  switch (rule.kind) {
    case 'node_silent':
      return `Tell me when ${who(rule.nodes)} was not heard for ${duration(rule.afterMinutes * 60)}`
    case 'metric': {
      const lasting = (rule.forMinutes ?? 0) > 0 ? ` for ${duration((rule.forMinutes ?? 0) * 60)}` : ''
      return `Tell me when ${rule.metric} of ${who(rule.nodes)} is ${rule.is} ${rule.limit}${lasting}`
    }
    case 'node_new':
      return 'Tell me when a node is heard for the first time'
    case 'node_restarted':
      return `Tell me when ${who(rule.nodes)} restarts`
    case 'area':
      return `Tell me when ${who(rule.nodes)} ${rule.when === 'moves' ? `moves more than ${rule.metres ?? 0} m` : `${rule.when} the area`}`
    case 'message':
      return `Tell me when somebody says ${rule.match?.words.join(' or ') ?? 'anything'}`
    case 'key':
      return `Tell me when the key of ${who(rule.nodes)} is doubtful`
    case 'link':
      return `Tell me when a radio or broker is down for ${duration(rule.afterMinutes * 60)}`
    case 'backup':
      return `Tell me when a backup fails, or none succeeds for ${rule.afterHours ?? 48} h`
    case 'sign_in':
      return 'Tell me when something happens to my account'
    default:
      return rule satisfies never
  }
}

/** Corners as users write them: latitude and longitude, one line each. */
export function showCorners(points: readonly (readonly [number, number])[]): string {
  return points.map(([latitude, longitude]) => `${latitude}, ${longitude}`).join('\n')
}

/** Null: fewer than three corners, or invalid coordinates. */
export function readCorners(text: string): [number, number][] | null {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const points = lines.map((line): [number, number] | null => {
    const found = /^\s*(-?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*(-?\d{1,3}(?:\.\d+)?)\s*$/.exec(line)
    const [latitude, longitude] = [Number(found?.[1]), Number(found?.[2])]
    return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? [latitude, longitude] : null
  })
  const good = points.filter((point) => point !== null)
  return good.length === lines.length && good.length >= 3 ? good : null
}
