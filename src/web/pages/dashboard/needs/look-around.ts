import type { InferResponseType } from 'hono/client'
import type { api } from '../../../api.ts'
import { now } from '../../../parts/age.tsx'
import { type Alert, firing, firingAlerts } from '../../../state/firing.ts'
import type { Loaded } from '../../../state/load.ts'
import { info, isDeaf, lostLinks } from '../../../state/mesh/links.ts'
import { isActive, nodes, nodesError } from '../../../state/mesh/nodes.ts'
import { can, has, isAdmin, isAnonymous } from '../../../state/session.ts'
import { needTexts } from '../../../strings/mesh/needs.ts'
import { alertNeeds } from './alert-needs.ts'
import { collectorNeeds, downOf, isDelivered, linkNeeds, lostOf } from './link-needs.ts'
import type { Need } from './need.ts'
import { relayNeeds, relaysOf, silentRelays } from './relays.ts'

type Dashboard = InferResponseType<typeof api.dashboard.$get, 200>

/** What was looked at. */
export type Looked = {
  /** Routers and repeaters that are heard. */
  readonly relays: number
  /** Radios and brokers that are connected. */
  readonly links: number
  readonly isServiceKnown: boolean
  /** Nothing can be heard, because nothing is connected. */
  readonly isDeaf: boolean
}

type Around = { readonly needs: readonly Need[]; readonly looked: Looked; readonly isLooking: boolean }

/** Reads signals, so the page is drawn again when they change. `service`: what is wrong with the service itself. */
export function lookAround(found: Dashboard | null, service: Pick<Loaded<readonly Need[]>, 'data' | 'error'>): Around {
  const all = nodes.value ?? []
  const alerts = isAnonymous.value ? [] : (firingAlerts.value ?? [])
  const mayKnowLinks = can('info', 'read') && !isAnonymous.value
  const known = mayKnowLinks ? info.value : null
  const links = known?.links ?? found?.links ?? []
  const down = mayKnowLinks ? lostOf(lostLinks.value) : downOf(found?.links ?? [])
  const isAllDown = links.length > 0 && down.length === links.length
  const hears = !isAllDown || (known !== null && isDelivered(known, now.value))
  const deafSince = hears ? null : Math.min(...down.map(({ since }) => since))
  const told = new Set(alerts.flatMap(({ kind, nodeNum }) => (kind === 'node_silent' ? (nodeNum ?? []) : [])))
  const silent = silentRelays(all, now.value, deafSince).filter(({ nodeNum }) => !told.has(nodeNum))
  const remedy = isAdmin.value ? { path: '/system', name: needTexts.openSystem } : null
  const names = new Set(alerts.filter(isOpen).flatMap(({ fact }) => (fact?.event === 'link_down' ? fact.name : [])))
  const isBackupTold = alerts.some((alert) => isOpen(alert) && alert.kind === 'backup')
  const needs = [
    ...alertNeeds(alerts, isAnonymous.value ? 0 : firing.value),
    ...linkNeeds(
      down.filter(({ name }) => !names.has(name)),
      remedy,
    ),
    ...(known === null ? [] : collectorNeeds(known, now.value, remedy)),
    ...relayNeeds(silent),
    ...(service.data.value ?? []).filter(({ key }) => !isBackupTold || !/^service backup_(?:failed|overdue)/.test(key)),
  ]
  const isHeardUnknown = found !== null && !mayKnowLinks && has('radio') && found.links.length === 0
  return {
    needs,
    looked: {
      relays: relaysOf(all).filter((node) => isActive(node, now.value)).length,
      links: links.filter(({ state }) => state === 'connected').length,
      isServiceKnown: isAdmin.value && service.data.value !== null,
      isDeaf: isDeaf.value || !hears || (isHeardUnknown && !isAnonymous.value && found.counts.activeNodes === 0),
    },
    isLooking:
      (can('nodes', 'read') && nodes.value === null && nodesError.value === null) ||
      (!isAnonymous.value && firingAlerts.value === null) ||
      (mayKnowLinks && known === null) ||
      (found === null && !mayKnowLinks) ||
      (service.data.value === null && service.error.value === null),
  }
}

const isOpen = ({ acknowledgedAt }: Alert) => acknowledgedAt === null
