import type { VNode } from 'preact'
import { PAGES } from '../../shared/pages.ts'
import type { IconName } from '../parts/icon.tsx'
import { lazyPage } from '../parts/list/lazy-page.tsx'
import { place } from '../router.ts'
import { can, isAdmin, isAnonymous } from '../state/session.ts'
import { t } from '../strings.ts'
import type { Action, Resource } from '../../shared/access/resources.ts'

// Each page is loaded on demand.
const AccountPage = lazyPage(async () => (await import('./account/account.tsx')).AccountPage, t.nav.account)
const AlertsPage = lazyPage(async () => (await import('./alerts/alerts.tsx')).AlertsPage, t.nav.alerts)
const AutomationPage = lazyPage(
  async () => (await import('./automation/automation.tsx')).AutomationPage,
  t.nav.automation,
)
const NewAutomationPage = lazyPage(
  async () => (await import('./automation/editor.tsx')).NewAutomationPage,
  t.nav.automation,
)
const RulePage = lazyPage(async () => (await import('./automation/editor.tsx')).RulePage, t.nav.automation)
const ConfigurationPage = lazyPage(
  async () => (await import('./device-config/device-config.tsx')).ConfigurationPage,
  t.nav.configuration,
)
const ConnectionsPage = lazyPage(
  async () => (await import('./connections/connections.tsx')).ConnectionsPage,
  t.nav.configuration,
)
const AuditPage = lazyPage(async () => (await import('./audit/audit.tsx')).AuditPage, t.nav.audit)
const BackupsPage = lazyPage(async () => (await import('./backups/backups.tsx')).BackupsPage, t.nav.backups)
const CopiesPage = lazyPage(async () => (await import('./backups/copies/copies.tsx')).CopiesPage, t.nav.backups)
const loadMessages = async () => (await import('./messages/messages.tsx')).MessagesPage
const loadNode = async () => (await import('./nodes/node.tsx')).NodePage
const loadDashboard = async () => (await import('./dashboard/dashboard.tsx')).DashboardPage
const DashboardPage = lazyPage(loadDashboard, t.nav.dashboard)
const loadNodes = async () => (await import('./nodes/nodes.tsx')).NodesPage
const NodesPage = lazyPage(loadNodes, t.nav.nodes)
const ComparePage = lazyPage(async () => (await import('./nodes/compare.tsx')).ComparePage, t.nav.nodes)
const MessagesPage = lazyPage(loadMessages, t.nav.messages)
export const NodePage = lazyPage(loadNode, t.nav.nodes)
export const MapPage = lazyPage(async () => (await import('./map/map.tsx')).MapPage, t.nav.map)
const NeighborsPage = lazyPage(async () => (await import('./topology/neighbors.tsx')).NeighborsPage, t.nav.neighbors)
const PacketsPage = lazyPage(async () => (await import('./topology/packets.tsx')).PacketsPage, t.nav.packets)
const BoardsPage = lazyPage(async () => (await import('./boards/boards.tsx')).BoardsPage, t.nav.boards)
const BoardPage = lazyPage(async () => (await import('./boards/board.tsx')).BoardPage, t.nav.boards)
const FindingsPage = lazyPage(async () => (await import('./findings/findings.tsx')).FindingsPage, t.nav.findings)
const TopologyPage = lazyPage(async () => (await import('./topology/graph/graph.tsx')).TopologyPage, t.nav.topology)
const SettingsPage = lazyPage(async () => (await import('./settings/settings.tsx')).SettingsPage, t.nav.settings)
const SystemPage = lazyPage(async () => (await import('./system/system.tsx')).SystemPage, t.nav.system)
const TraceroutesPage = lazyPage(
  async () => (await import('./topology/traceroutes.tsx')).TraceroutesPage,
  t.nav.traceroutes,
)
const PublicAccessPage = lazyPage(
  async () => (await import('./users/public-access.tsx')).PublicAccessPage,
  t.nav.publicAccess,
)
const NewUserPage = lazyPage(async () => (await import('./users/new-user.tsx')).NewUserPage, t.nav.users)
const UserPage = lazyPage(async () => (await import('./users/user.tsx')).UserPage, t.nav.users)
const UsersPage = lazyPage(async () => (await import('./users/users.tsx')).UsersPage, t.nav.users)

// While the page finds out who is signed in, it already loads the code of the first page.
const early = { '/': loadDashboard, '/nodes': loadNodes }[place.peek().path]
early?.().catch(() => {})

const WARM_MS = 1500

/** Preloads the pages that most users open next, after the first page has loaded; returns a function to cancel that. */
export function warmPages(): () => void {
  const timer = setTimeout(() => {
    // The map has enough code of its own to load.
    if (place.peek().path === '/map') return
    // The failure is shown when the user opens that page.
    for (const load of [loadDashboard, loadNodes, loadMessages, loadNode]) load().catch(() => {})
  }, WARM_MS)
  return () => clearTimeout(timer)
}

/** Who may open a page. */
export type Need =
  | 'signed-in'
  | 'admin'
  | {
      readonly resource: Resource
      readonly action: Action
      /** Never for people without an account. */
      readonly isPrivate?: true
    }

export type Route = {
  readonly pattern: RegExp
  readonly need: Need
  /** Its place in the navigation; subpages have none. */
  readonly nav?: {
    readonly path: string
    readonly name: string
    readonly icon: IconName
    readonly group: 'mesh' | 'administration'
  }
  readonly draw: (params: Readonly<Record<string, string>>) => VNode
}

const read = (resource: Resource): Need => ({ resource, action: 'read' })

export const ROUTES: readonly Route[] = [
  {
    pattern: PAGES.dashboard,
    need: read('dashboard'),
    nav: { path: '/', name: t.nav.dashboard, icon: 'dashboard', group: 'mesh' },
    draw: () => <DashboardPage />,
  },
  {
    pattern: PAGES.map,
    need: read('nodes'),
    nav: { path: '/map', name: t.nav.map, icon: 'map', group: 'mesh' },
    draw: () => <MapPage />,
  },
  {
    pattern: PAGES.nodes,
    need: read('nodes'),
    nav: { path: '/nodes', name: t.nav.nodes, icon: 'nodes', group: 'mesh' },
    draw: () => <NodesPage />,
  },
  { pattern: PAGES.compare, need: read('nodes'), draw: () => <ComparePage /> },
  {
    pattern: PAGES.node,
    need: read('nodes'),
    draw: ({ id = '' }) => <NodePage id={id.toLowerCase()} key={id} />,
  },
  {
    pattern: PAGES.messages,
    need: read('messages'),
    nav: { path: '/messages', name: t.nav.messages, icon: 'messages', group: 'mesh' },
    draw: () => <MessagesPage />,
  },
  {
    pattern: PAGES.alerts,
    need: 'signed-in',
    nav: { path: '/alerts', name: t.nav.alerts, icon: 'bell', group: 'mesh' },
    draw: () => <AlertsPage />,
  },
  {
    pattern: PAGES.traceroutes,
    need: read('info'),
    nav: { path: '/traceroutes', name: t.nav.traceroutes, icon: 'routes', group: 'mesh' },
    draw: () => <TraceroutesPage />,
  },
  {
    pattern: PAGES.neighbors,
    need: read('info'),
    nav: { path: '/neighbors', name: t.nav.neighbors, icon: 'neighbors', group: 'mesh' },
    draw: () => <NeighborsPage />,
  },
  {
    pattern: PAGES.packets,
    need: { resource: 'info', action: 'read', isPrivate: true },
    nav: { path: '/packets', name: t.nav.packets, icon: 'packets', group: 'mesh' },
    draw: () => <PacketsPage />,
  },
  {
    pattern: PAGES.findings,
    need: { resource: 'info', action: 'read', isPrivate: true },
    nav: { path: '/findings', name: t.nav.findings, icon: 'warning', group: 'mesh' },
    draw: () => <FindingsPage />,
  },
  {
    pattern: PAGES.topology,
    need: { resource: 'info', action: 'read', isPrivate: true },
    nav: { path: '/topology', name: t.nav.topology, icon: 'link', group: 'mesh' },
    draw: () => <TopologyPage />,
  },
  {
    pattern: PAGES.boards,
    need: { resource: 'info', action: 'read', isPrivate: true },
    nav: { path: '/boards', name: t.nav.boards, icon: 'boards', group: 'mesh' },
    draw: () => <BoardsPage />,
  },
  {
    pattern: PAGES.board,
    need: { resource: 'info', action: 'read', isPrivate: true },
    draw: ({ id = '' }) => <BoardPage id={id} key={id} />,
  },
  {
    pattern: PAGES.automation,
    need: read('automation'),
    nav: { path: '/automation', name: t.nav.automation, icon: 'automation', group: 'mesh' },
    draw: () => <AutomationPage />,
  },
  {
    pattern: PAGES.newRule,
    need: { resource: 'automation', action: 'write' },
    draw: () => <NewAutomationPage />,
  },
  {
    pattern: PAGES.rule,
    need: read('automation'),
    draw: ({ id = '' }) => <RulePage id={id} key={id} />,
  },
  { pattern: PAGES.connections, need: read('configuration'), draw: () => <ConnectionsPage /> },
  {
    pattern: PAGES.configuration,
    need: read('configuration'),
    nav: { path: '/configuration', name: t.nav.configuration, icon: 'radio', group: 'administration' },
    draw: ({ section }) => <ConfigurationPage section={section ?? null} />,
  },
  {
    pattern: PAGES.users,
    need: 'admin',
    nav: { path: '/users', name: t.nav.users, icon: 'users', group: 'administration' },
    draw: () => <UsersPage />,
  },
  { pattern: PAGES.newUser, need: 'admin', draw: () => <NewUserPage /> },
  {
    pattern: PAGES.user,
    need: 'admin',
    draw: ({ id = '' }) => <UserPage id={id} key={id} />,
  },
  {
    pattern: PAGES.publicAccess,
    need: 'admin',
    nav: { path: '/public-access', name: t.nav.publicAccess, icon: 'eye', group: 'administration' },
    draw: () => <PublicAccessPage />,
  },
  {
    pattern: PAGES.audit,
    need: 'admin',
    nav: { path: '/audit', name: t.nav.audit, icon: 'audit', group: 'administration' },
    draw: () => <AuditPage />,
  },
  { pattern: PAGES.copies, need: 'admin', draw: () => <CopiesPage /> },
  {
    pattern: PAGES.backups,
    need: 'admin',
    nav: { path: '/backups', name: t.nav.backups, icon: 'backups', group: 'administration' },
    draw: () => <BackupsPage />,
  },
  {
    pattern: PAGES.system,
    need: 'admin',
    nav: { path: '/system', name: t.nav.system, icon: 'info', group: 'administration' },
    draw: () => <SystemPage />,
  },
  {
    pattern: PAGES.settings,
    need: read('settings'),
    nav: { path: '/settings', name: t.nav.settings, icon: 'settings', group: 'administration' },
    draw: () => <SettingsPage />,
  },
  { pattern: PAGES.account, need: 'signed-in', draw: () => <AccountPage /> },
]

export function mayOpen(need: Need): boolean {
  if (need === 'signed-in') return !isAnonymous.value
  if (need === 'admin') return isAdmin.value
  return can(need.resource, need.action) && !(need.isPrivate && isAnonymous.value)
}

/** The place of a page in the navigation of this user; undefined: it has none. */
export function navOf(route: Route): Route['nav'] {
  return mayOpen(route.need) ? route.nav : undefined
}

/** The permission that a page requires, in words. */
export function nameNeed(need: Need): string {
  if (need === 'signed-in') return ''
  return need === 'admin'
    ? t.shell.needAdmin
    : t.shell.needPermission(t.resources[need.resource], t.actions[need.action])
}
