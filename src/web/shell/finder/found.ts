import { mayOpen, navOf, ROUTES } from '../../pages/routes.tsx'
import { navigate, visited } from '../../router.ts'
import { conversationOf } from '../../state/messages/inbox.ts'
import { type Message, type Node, nameOf, nodeName } from '../../state/mesh/nodes.ts'
import { can, has, isAnonymous } from '../../state/session.ts'
import { startWall } from '../../state/wall.ts'
import { englishOf } from '../../language.ts'
import { t } from '../../strings.ts'
import { compareTexts } from '../../strings/mesh/compare.ts'
import { userTexts } from '../../strings/people/users.ts'
import { connectionTexts } from '../../strings/system/connections.ts'
import { theme } from '../../theme.ts'
import { bestOf, type Candidate, excerpt, fold, type Searched, searched } from './match.ts'
import { reveal } from './reveal.ts'
import { settingsHere } from './settings.ts'

export type Found = { readonly key: string; readonly name: string; readonly kind: string; run(): void }

type Named = Found & Candidate

/** Without anything typed, and of names. */
const MAX_NAMED = 12
const MAX_TEXTS = 5

/** Favourites come before what was visited, and the latest of that first. */
const FAVORITE = 1_000_000

function weightOf(path: string): number {
  return visited().indexOf(path) + 1
}

/** Pages, nodes, actions and settings by their names, the best match first; then texts, the latest first. */
export function find(typed: string, nodes: readonly Node[], texts: readonly Message[]): readonly Found[] {
  const wanted = fold(typed)
  const near = [...pages(), ...actions()]
  if (wanted === '') return near.slice(0, MAX_NAMED)
  const named = bestOf(wanted, [...near, ...nodes.map(asFound), ...settings()])
  return [...named.slice(0, MAX_NAMED), ...texts.slice(0, MAX_TEXTS).map((text) => asText(text, typed))]
}

function named(kind: string, name: string, path: string | null, run: () => void, english = name): Named {
  const names = [...new Set([name, english])].map(searched)
  return {
    key: `${kind} ${path ?? name}`,
    name,
    kind,
    run,
    names,
    around: null,
    weight: path === null ? 0 : weightOf(path),
  }
}

function pages(): readonly Named[] {
  const page = (name: string, path: string, english: string) =>
    named(t.finder.page, name, path, () => navigate(path), english)
  const inEnglish: Readonly<Record<string, string>> = englishOf(t.nav)
  const english = new Map(Object.entries(t.nav).map(([key, name]) => [name, inEnglish[key]]))
  return [
    ...ROUTES.flatMap((route) => navOf(route) ?? []).flatMap(({ name, path }) =>
      page(name, path, english.get(name) ?? name),
    ),
    ...(isAnonymous.value ? [] : [page(t.nav.account, '/account', englishOf(t.nav).account)]),
    ...SUBPAGES.flatMap(([path, name, english]) => {
      const route = ROUTES.find(({ pattern }) => pattern.test(path))
      return route !== undefined && mayOpen(route.need) ? page(name, path, english) : []
    }),
  ]
}

/** Pages without a place in the navigation. A new rule is an action. */
const SUBPAGES = [
  ['/configuration/connections', connectionTexts.title, englishOf(connectionTexts).title],
  ['/nodes/compare', compareTexts.title, englishOf(compareTexts).title],
  ['/users/new', userTexts.createTitle, englishOf(userTexts).createTitle],
] as const

function actions(): readonly Named[] {
  const act = (name: 'wall' | 'write' | 'trace' | 'rule' | 'light' | 'dark', run: () => void) =>
    named(t.finder.action, t.finder[name], null, run, englishOf(t.finder)[name])
  return [
    ...(can('dashboard', 'read') ? [act('wall', startWall)] : []),
    ...(can('messages', 'write') && has('radio') ? [act('write', () => navigate('/messages'))] : []),
    ...(can('info', 'write') && has('radio') ? [act('trace', () => navigate('/traceroutes'))] : []),
    ...(can('automation', 'write') ? [act('rule', () => navigate('/automation/new'))] : []),
    act('light', () => (theme.value = 'light')),
    act('dark', () => (theme.value = 'dark')),
  ]
}

const namesOfNodes = new WeakMap<Node, readonly Searched[]>()

function asFound(node: Node): Named {
  const path = `/nodes/${node.nodeId}`
  let names = namesOfNodes.get(node)
  if (names === undefined) {
    const all = [nodeName(node), node.shortName, node.nodeId, String(node.nodeNum), node.status?.text]
    names = all.flatMap((name) => (name ? [searched(name)] : []))
    namesOfNodes.set(node, names)
  }
  return {
    key: path,
    name: nodeName(node),
    kind: t.finder.node,
    run: () => navigate(path),
    names,
    around: null,
    weight: weightOf(path) + (node.isFavorite ? FAVORITE : 0),
  }
}

function asText(message: Message, typed: string): Found {
  return {
    key: `text ${message.id}`,
    name: excerpt(message.text, typed),
    kind: t.finder.text(nameOf(message.fromNodeNum, message.fromNodeId)),
    run: () => navigate(`/messages?${conversationOf(message)}&message=${message.id}`),
  }
}

/** The names of settings never change. */
const namesOfSettings = new Map<string, Searched>()

function searchedOnce(name: string): Searched {
  const known = namesOfSettings.get(name) ?? searched(name)
  namesOfSettings.set(name, known)
  return known
}

function settings(): readonly Named[] {
  return settingsHere().map(({ name, others, where, path, shownAs, about }) => ({
    key: `${where} ${name}`,
    name,
    kind: where,
    run: () => reveal(shownAs, () => navigate(path)),
    names: [...new Set([name, ...others])].map(searchedOnce),
    around: { about: searchedOnce(about), where: searchedOnce(where) },
    weight: weightOf(path),
  }))
}
