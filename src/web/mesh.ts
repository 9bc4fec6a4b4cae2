import { computed, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Message } from '../app/mesh/messages.ts'
import type { Node } from '../app/mesh/nodes.ts'
import { api, ApiError, ask, askAs, online, reconnects, send } from './api.ts'
import { can } from './session.ts'
import { t } from './strings.ts'

export type { Message, Node }
export type MessagePage = { readonly messages: readonly Message[]; readonly nextBefore: number | null }

export const BROADCAST = 0xffffffff
/** Heard within so many milliseconds, a node is active: two hours, or what the settings say. */
export const activeMs = signal(2 * 3_600_000)
const POLL_MS = 5000

/** All nodes, the latest heard first; null until they came once. */
export const nodes = signal<readonly Node[] | null>(null)
export const nodesError = signal<ApiError | null>(null)
const byNum = computed(() => new Map(nodes.value?.map((node) => [node.nodeNum, node])))

export function nodeByNum(nodeNum: number): Node | undefined {
  return byNum.value.get(nodeNum)
}

let etag: string | null = null

/** Asks for the nodes; an unchanged list costs an empty answer. Throws nothing: see `nodesError`. */
export async function refreshNodes(): Promise<void> {
  try {
    const headers: Record<string, string> = etag === null ? {} : { 'If-None-Match': etag }
    const response = await send(api.nodes.$get({ query: {} }, { headers }))
    if (response.status !== 304) {
      nodes.value = await askAs<Node[]>(Promise.resolve(response))
      etag = response.headers.get('etag')
    }
    nodesError.value = null
  } catch (error) {
    const failed = error instanceof ApiError ? error : new ApiError(0, 'internal', '', {}, null)
    if (failed.code !== 'offline' || nodes.peek() === null) nodesError.value = failed
  }
}

/** The setting is told to those who may see the dashboard; without an answer the default stays. */
async function refreshActive(): Promise<void> {
  if (!can('dashboard', 'read')) return
  const found = await ask(api.dashboard.$get()).catch(() => null)
  if (found !== null) activeMs.value = found.activeSeconds * 1000
}

/** Drops what was loaded for somebody else. */
export function forgetNodes(): void {
  nodes.value = null
  etag = null
}

let users = 0
let timer: ReturnType<typeof setInterval> | undefined

/** Keeps the nodes fresh while a page that shows them is open. */
export function useNodes(): void {
  useEffect(() => {
    const tick = () => {
      if (document.visibilityState === 'visible' && online.peek()) void refreshNodes()
    }
    if (users++ === 0) {
      timer = setInterval(tick, POLL_MS)
      void refreshActive()
    }
    void refreshNodes()
    const stop = reconnects.subscribe(tick)
    return () => {
      stop()
      if (--users === 0) clearInterval(timer)
    }
  }, [])
}

/** What a node is called: its long name, else what its number makes. */
export function nodeName(node: Node): string {
  return node.longName ?? `${t.nodes.unnamed} ${node.nodeId}`
}

export function isActive(node: Node, now: number): boolean {
  return node.lastHeard !== null && now - node.lastHeard < activeMs.value
}

/** Metres half across the cell that a position of so many bits may lie in; null when it is exact. */
export function precisionMeters(precisionBits: number | null): number | null {
  if (precisionBits === null || precisionBits >= 32 || precisionBits < 10) return null
  // 1e-7 degrees a unit, 111,320 m a degree; the cell is 2^(32 − bits) units wide.
  return (2 ** (32 - precisionBits) * 1e-7 * 111_320) / 2
}
