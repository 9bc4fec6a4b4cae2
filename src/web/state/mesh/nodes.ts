import { computed, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Message } from '../../../app/mesh/messages/messages.ts'
import type { Node } from '../../../app/mesh/nodes/nodes.ts'
import { api, type ApiError, ask, askAs, isRecord, online, send } from '../../api.ts'
import { isHearing, isLive, type LiveEvent, needHeard } from '../live.ts'
import { useCachedList } from '../offline-cache.ts'
import { few, listUsers, senderNames } from './known-nodes.ts'
import { asApiError, useFresh, whileAwaited } from '../load.ts'
import { can, isAnonymous } from '../session.ts'
import { plain } from '../../format.ts'
import { t } from '../../strings.ts'
import { HOUR_MS } from '../../../shared/time.ts'

export type { Message, Node }
export type MessagePage = { readonly messages: readonly Message[]; readonly nextBefore: number | null }

export const BROADCAST = 0xffffffff
/** A node heard within this many milliseconds is active: two hours, or as configured. */
export const activeMs = signal(2 * HOUR_MS)
const POLL_MS = 5000

/** All nodes, the latest heard first; null until they were loaded once. */
export const nodes = signal<readonly Node[] | null>(null)
export const nodesError = signal<ApiError | null>(null)
/** Whether the service has sent the whole list. */
const isWhole = signal(false)
type Loader = typeof import('./few.ts')
/** The code that loads single nodes; null: none was needed yet, or loading the code failed. */
let loader: Promise<Loader | null> | null = null

async function withFew(use: (found: Loader) => void): Promise<void> {
  const found = await loader
  if (found === null) loader = null
  else use(found)
}

const byNum = computed(() => {
  const all = new Map(nodes.value?.map((node) => [node.nodeNum, node]))
  for (const [nodeNum, node] of few.value) all.set(nodeNum, node)
  return all
})

/** A node, if it is known here. An unknown one is loaded, unless the page loads all nodes. */
export function nodeByNum(nodeNum: number): Node | undefined {
  lookFor(nodeNum)
  return byNum.value.get(nodeNum)
}

function lookFor(nodeNum: number): void {
  if (listUsers.peek() > 0 || nodeNum <= 0 || nodeNum >= BROADCAST) return
  loader ??= import('./few.ts').catch(() => null)
  void withFew(({ wantNode }) => wantNode(nodeNum))
}

/** Nodes were heard since then that no event has reported: their names are right, but not their times. */
let isBehind = false
isHearing.subscribe((is) => {
  isBehind ||= !is
})

/** Whether all nodes are loaded, and their changes since then were recorded. */
export function isListHere(): boolean {
  return changed !== null && nodes.peek() !== null
}

let etag: string | null = null

/** The complete list, page by page if it exceeds one answer. */
async function readPages(first: readonly Node[], cursor: string | null): Promise<readonly Node[]> {
  if (cursor === null) return first
  const all = new Map(first.map((node) => [node.nodeNum, node]))
  // The pages loaded so far are valid while the rest is loading.
  if (nodes.peek() === null) nodes.value = first
  let next: string | null = cursor
  while (next !== null) {
    const page = await readPage(next)
    for (const node of page.nodes) all.set(node.nodeNum, node)
    next = page.next
  }
  return [...all.values()].toSorted(byLastHeard)
}

async function readPage(cursor: string): Promise<{ nodes: Node[]; next: string | null }> {
  const response = await send(api.nodes.$get({ query: { cursor } }))
  return { nodes: await askAs<Node[]>(Promise.resolve(response)), next: response.headers.get('x-next-cursor') }
}

function byLastHeard(a: Node, b: Node): number {
  return (b.lastHeard ?? 0) - (a.lastHeard ?? 0)
}

/** The running request. */
let reading: Promise<void> | null = null

/**
 * Loads the nodes, if the user may see them; an unchanged list costs an empty answer. One request at a time, because
 * only the previous answer says which list is known. Throws nothing: see `nodesError`.
 */
export async function refreshNodes(): Promise<void> {
  const mine = reading === null ? readNodes() : reading.then(readNodes)
  reading = mine
  await mine
  if (reading === mine) reading = null
}

async function readNodes(): Promise<void> {
  if (!can('nodes', 'read')) return
  try {
    const headers: Record<string, string> = etag === null ? {} : { 'If-None-Match': etag }
    const response = await send(api.nodes.$get({ query: {} }, { headers }))
    if (response.status !== 304) {
      const first = await askAs<Node[]>(Promise.resolve(response))
      nodes.value = await readPages(first, response.headers.get('x-next-cursor'))
      isWhole.value = true
      void withFew(({ dropFew }) => dropFew())
      etag = response.headers.get('etag')
    }
    nodesError.value = null
    isBehind = false
  } catch (error) {
    const failed = asApiError(error)
    if (failed.code !== 'offline' || nodes.peek() === null) nodesError.value = failed
  }
}

/** Users who may see the dashboard get the setting; without an answer the default stays. */
async function refreshActive(): Promise<void> {
  if (!can('dashboard', 'read')) return
  const found = await ask(api.dashboard.$get()).catch(() => null)
  if (found !== null) activeMs.value = found.activeSeconds * 1000
}

/** Drops data that was loaded for another user. */
export function forgetNodes(): void {
  nodes.value = null
  isWhole.value = false
  few.value = new Map()
  senderNames.value = new Map()
  void withFew(({ dropFew }) => dropFew())
  reading = null
  etag = null
  changed = null
}

/** Up to this many changed nodes are loaded one by one; for more, the whole list is cheaper. */
const MAX_SINGLE = 4
/** The minimum time between two loads of the whole list. */
const REST_MS_PER_NODE = 2
const MAX_REST_MS = 5000
/** What an event reports about a node: its changes, its deletion, or only that something changed. */
type News = Partial<Node> | 'gone' | 'changed'
/** By the number of the node; null: any may have changed. */
let changed: Map<number, News> | null = null

function noteChange(event: LiveEvent): boolean {
  const nodeNum = event?.data['nodeNum']
  if (event === null || typeof nodeNum !== 'number') {
    changed = null
    void withFew(({ renewFew }) => renewFew())
  } else if (nodeNum > 0 && nodeNum < BROADCAST) {
    const news = newsOf(event.data)
    changed?.set(nodeNum, addNews(changed.get(nodeNum), news))
    void withFew(({ changeFew }) => changeFew(nodeNum, news === 'gone' ? null : news === 'changed' ? {} : news))
  }
  return false
}

function newsOf({ isDeleted, changes }: Readonly<Record<string, unknown>>): News {
  if (isDeleted === true) return 'gone'
  return isRecord(changes) ? changes : 'changed'
}

function addNews(before: News | undefined, next: News): News {
  if (before === undefined || before === 'gone' || next === 'gone') return next
  return before === 'changed' || next === 'changed' ? 'changed' : { ...before, ...next }
}

async function refreshChanged(): Promise<void> {
  const news = changed
  const known = nodes.peek()
  changed = new Map()
  const told = news === null || known === null ? null : await tellNodes(news)
  if (news === null || told === null || news.size === 0) {
    await refreshNodes()
    // With thousands of nodes of which many are heard, once every few seconds is enough.
    await new Promise((resolve) => setTimeout(resolve, Math.min(MAX_REST_MS, (known?.length ?? 0) * REST_MS_PER_NODE)))
    return
  }
  const others = (nodes.peek() ?? []).filter(({ nodeNum }) => !news.has(nodeNum))
  nodes.value = [...told, ...others].toSorted(byLastHeard)
  nodesError.value = null
}

/** The current state of the changed nodes; null: loading the list is more efficient. */
async function tellNodes(news: ReadonlyMap<number, News>): Promise<readonly Node[] | null> {
  const known: Node[] = []
  const unknown: number[] = []
  for (const [nodeNum, what] of news) {
    if (what === 'gone') continue
    const node = what === 'changed' ? null : changedNode(nodeByNum(nodeNum), what)
    if (node === null) unknown.push(nodeNum)
    else known.push(node)
  }
  if (unknown.length > MAX_SINGLE) return null
  try {
    const asked = unknown.map((nodeNum) => ask(api.nodes[':id'].$get({ param: { id: String(nodeNum) } })))
    return [...known, ...(await Promise.all(asked))]
  } catch {
    // A node has disappeared again, or the service is unreachable; loading the list shows which.
    return null
  }
}

/** Null if the event does not contain the whole node: only its changes were reported, and the rest is unknown. */
function changedNode(before: Node | undefined, changes: Partial<Node>): Node | null {
  const node = { ...before, ...changes }
  return hasAll(node) ? node : null
}

function hasAll(node: Partial<Node>): node is Node {
  return node.nodeNum !== undefined && node.firstHeard !== undefined
}

/** Keeps all nodes fresh while a page that shows them is open. */
export function useNodes(): void {
  useEffect(() => {
    const stopHearing = needHeard()
    const leave = enterList(true)
    return () => {
      leave()
      stopHearing()
    }
  }, [])
}

/**
 * For pages that only name nodes: each is loaded when it is first named. If all nodes are already loaded, their names
 * are kept fresh instead.
 */
export function useNames(): void {
  useEffect(() => (isListHere() || isAnonymous.peek() ? enterList(isAnonymous.peek()) : undefined), [])
}

/** `isWhole`: with the times at which they were heard. Returns the function to leave it. */
function enterList(isWhole: boolean): () => void {
  // All who show nodes share one list: the first loads it, the others find it there.
  listUsers.value = listUsers.peek() + 1
  if (listUsers.peek() === 1 || (isWhole && isBehind)) {
    void refreshActive()
    // Earlier data is still updated by the events.
    if (isListHere() && isLive(['node']) && !(isWhole && isBehind)) void refreshChanged()
    else {
      changed = new Map()
      void whileAwaited(refreshNodes())
    }
  }
  return () => {
    listUsers.value = listUsers.peek() - 1
  }
}

/** Keeps the list up to date: once per page. */
export function NodeKeeper(): null {
  useCachedList('nodes', nodes, nodesError, () => listUsers.value > 0)
  useFresh(
    async () => {
      if (listUsers.peek() > 0) await refreshChanged()
    },
    POLL_MS,
    ['node'],
    noteChange,
  )
  return null
}

let lastNames: ReadonlyMap<number, string> = new Map()
/**
 * The same object as long as no name changes, so that hundreds of messages are not rendered again for each heard node.
 */
const names = computed(() => {
  const next = new Map([...byNum.value].map(([nodeNum, node]) => [nodeNum, nodeName(node)]))
  const isSame = next.size === lastNames.size && [...next].every(([num, name]) => lastNames.get(num) === name)
  if (!isSame) lastNames = next
  return lastNames
})

/** The name of a node, as far as it is known here. */
export function nameOf(nodeNum: number, nodeId: string): string {
  const told = senderNames.value.get(nodeNum)
  if (told === undefined) lookFor(nodeNum)
  return told ?? names.value.get(nodeNum) ?? nodeId
}

/** As `nameOf`; null while the list of nodes that may have the name is still loading. */
export function awaitedName(nodeNum: number, nodeId: string): string | null {
  const name = nameOf(nodeNum, nodeId)
  if (name !== nodeId || isWhole.value || !can('nodes', 'read')) return name
  return nodesError.value === null && online.value ? null : name
}

/** As `nameOf`, from a node id alone. */
export function nameOfId(nodeId: string): string {
  return nameOf(Number.parseInt(nodeId.slice(1), 16), nodeId)
}

/**
 * The name of a node: its long name, or one derived from its number. If hidden characters were removed from the name,
 * another node may have the same, so its id tells them apart.
 */
export function nodeName(node: Node): string {
  return isAltered(node) ? `${longNameOf(node)} (${node.nodeId})` : longNameOf(node)
}

/** The same without the id, where that is shown beside it. */
export function longNameOf(node: Node): string {
  return legible(node.longName) ?? `${t.nodes.unnamed} ${node.nodeId}`
}

/** Whether the name alone may be that of another node, too. */
export function isAltered({ nameAltered, longName }: Node): boolean {
  return nameAltered && legible(longName) !== null
}

/** Whether a search for `wanted`, in lower case, finds the node: by its names, its !hex id, its number or its status. */
export function isCalled(node: Node, wanted: string): boolean {
  const words = [nodeName(node), node.shortName ?? '', node.nodeId, String(node.nodeNum), node.status?.text ?? '']
  return words.some((text) => text.toLowerCase().includes(wanted))
}

/** The few characters that stand for a node where there is little room. */
export function shortNameOf(node: Node): string {
  return legible(node.shortName) ?? node.nodeId.slice(-4)
}

const VISIBLE = /[^\p{Cf}\s]/u

/** A name for use within a line; null if nothing of it would be visible. */
export function legible(name: string | null): string | null {
  const text = plain(name ?? '')
  return VISIBLE.test(text) ? text : null
}

export function isActive(node: Node, now: number): boolean {
  return node.lastHeard !== null && now - node.lastHeard < activeMs.value
}

/** Half the width in metres of the cell in which a position of this many bits lies; null if it is exact. */
export function precisionMeters(precisionBits: number | null): number | null {
  if (precisionBits === null || precisionBits >= 32 || precisionBits < 10) return null
  // 1e-7 degrees a unit, 111,320 m a degree; the cell is 2^(32 − bits) units wide.
  return (2 ** (32 - precisionBits) * 1e-7 * 111_320) / 2
}

/**
 * Whether a channel is a slot of a radio. Other channels have a number of their own: they are heard through MQTT, or by
 * a radio that does not send now.
 */
export function isInRadio(index: number): boolean {
  return index < 8
}
