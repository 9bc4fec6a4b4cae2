import { backOff } from '../../../shared/back-off.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../shared/time.ts'
import { SendFailure } from '../../base/outgoing/ports.ts'
import { sha256Hex } from '../../base/crypto.ts'
import type { Ports } from '../../base/context.ts'
import type { Pause } from '../../base/pacing/slices.ts'
import { type Chain, readChain, rowsAfter, withPreviousHashes } from '../chain.ts'
import { deliverItems, type DeliveryNeeds } from './deliver.ts'
import type { AnchorItem } from './line.ts'
import { type AnchorState, keepAnchorState, type StoredState, readAnchorState } from './state.ts'
import type { AnchorTarget } from '../../config/anchor-target.ts'

/** Entries and anchors in one delivery. */
const BATCH = 100
/** The maximum number of anchors that wait for a target: one a day for a year. */
const MAX_PENDING = 366
/** An interrupted delivery is repeated after this time. */
const CLAIM_MS = MINUTE_MS
const RETRY = { firstMs: 10 * SECOND_MS, mostMs: 15 * MINUTE_MS }
/** The time between two e-mails. Entries are collected meanwhile. */
const MAIL_EVERY_MS = 10 * MINUTE_MS

type Needs = DeliveryNeeds & Pick<Ports, 'store' | 'log'>

/**
 * Delivers what is due: a line each day (UTC) with the last sealed entry and its hash and, with AUDIT_ANCHOR_ENTRIES,
 * each entry before the line that covers it. Everything is delivered in order and at least once. Stops at the first
 * failure, and waits longer after each.
 */
export async function anchorAudit(needs: Needs, pause: Pause): Promise<void> {
  const { AUDIT_ANCHOR_URL: target } = needs.config
  if (target === null) return
  while (await deliverBatch(needs, target)) if (!(await pause())) return
}

/** Returns whether more may be due. */
async function deliverBatch(needs: Needs, target: AnchorTarget): Promise<boolean> {
  const { store, now, log } = needs
  const at = now()
  const before = await readAnchorState(store)
  const chain = await readChain(store)
  if (chain.sealedId === 0) return false
  const state = withAnchorOfDay(needs, await settle(needs, before, { target, chain }), { chain, at })
  const items = await nextItems(needs, state, chain)
  // If the clock was set back, `nextAt` may be far in the future and does not count.
  const waits = state.nextAt > at && state.nextAt <= at + HOUR_MS
  if (items.length === 0 || waits) {
    if (JSON.stringify(state) !== before.text) await keepAnchorState(store, before, state, at)
    return false
  }
  const claimed = await keepAnchorState(store, before, { ...state, nextAt: at + CLAIM_MS }, at)
  if (claimed === null) return false
  try {
    await deliverItems(needs, target, items)
  } catch (error) {
    const { failures } = state
    const reason = error instanceof SendFailure ? { reason: error.message } : { error }
    log.warn('Anchoring the audit log elsewhere failed; retrying', { ...reason, failures: failures + 1 })
    const nextAt = now() + backOff(failures, RETRY)
    await keepAnchorState(store, claimed, { ...state, failures: failures + 1, nextAt }, now())
    return false
  }
  if (state.failures > 0) log.info('The audit log is anchored elsewhere again', { failures: state.failures })
  await keepAnchorState(store, claimed, delivered(state, items, { target, at: now() }), now())
  return target.kind !== 'mail'
}

/** The state for this target and this log. If the log is not the one that was delivered, a new state begins. */
async function settle(
  { store, config, log }: Needs,
  { state }: StoredState,
  { target, chain }: { readonly target: AnchorTarget; readonly chain: Chain },
): Promise<AnchorState> {
  const { AUDIT_ANCHOR_ENTRIES: isEach } = config
  const name = sha256Hex(JSON.stringify(target)).slice(0, 16)
  const end = { id: chain.sealedId, hash: chain.sealedHash }
  const anew = { target: name, day: '', pending: [], failures: 0, nextAt: 0, deliveredAt: null }
  if (state === null || state.target !== name) return { ...anew, last: isEach ? end : null }
  if (!isEach || state.last === null) return { ...state, last: isEach ? end : null }
  const { last } = state
  const trimmed = { id: chain.trimmedId, hash: chain.trimmedHash }
  if (last.id < trimmed.id) {
    log.error('Audit entries were trimmed before they were delivered; they are in the exported file only', {
      from: last.id + 1,
      to: trimmed.id,
    })
    return { ...state, last: trimmed }
  }
  const hash = last.id === trimmed.id ? trimmed.hash : (await rowsAfter(store, last.id - 1, 1))[0]?.hash
  if (hash === last.hash) return state
  log.error('THE AUDIT LOG IS NOT THE ONE THAT WAS ANCHORED; run "audit verify --anchor". It is delivered once more', {
    entry: last.id,
  })
  return { ...anew, last: trimmed }
}

function withAnchorOfDay(
  { log }: Needs,
  state: AnchorState,
  { chain, at }: { readonly chain: Chain; readonly at: number },
): AnchorState {
  const day = new Date(at).toISOString().slice(0, 10)
  if (day === state.day) return state
  const pending = [...state.pending, { time: at, id: chain.sealedId, hash: chain.sealedHash }]
  if (pending.length > MAX_PENDING)
    log.error('The oldest anchor of the audit log was given up', { entry: pending[0]?.id ?? null })
  return { ...state, day, pending: pending.slice(-MAX_PENDING) }
}

/** After each failure half as many, because a target may refuse a delivery for its size. */
async function nextItems(
  { store }: Needs,
  { pending, last, failures }: AnchorState,
  chain: Chain,
): Promise<AnchorItem[]> {
  const most = Math.max(1, Math.floor(BATCH / 2 ** failures))
  const found = last === null ? [] : await rowsAfter(store, last.id, most)
  const rows = await withPreviousHashes(
    store,
    found.filter(({ id }) => id <= chain.sealedId),
  )
  // An anchor follows the entries that it covers.
  const until = found.length < most ? Number.MAX_SAFE_INTEGER : (rows.at(-1)?.id ?? 0)
  const anchors = pending.filter(({ id }) => id <= until)
  const items = [
    ...rows.map((row) => ({ id: row.id, item: { kind: 'entry', row } as const })),
    ...anchors.map((anchor) => ({ id: anchor.id, item: { kind: 'anchor', anchor } as const })),
  ]
  return items
    .toSorted((a, b) => a.id - b.id)
    .slice(0, most)
    .map(({ item }) => item)
}

function delivered(
  state: AnchorState,
  items: readonly AnchorItem[],
  { target, at }: { readonly target: AnchorTarget; readonly at: number },
): AnchorState {
  const anchors = items.filter(({ kind }) => kind === 'anchor').length
  const row = items.findLast((item) => item.kind === 'entry')?.row
  return {
    ...state,
    pending: state.pending.slice(anchors),
    last: row === undefined ? state.last : { id: row.id, hash: row.hash ?? '' },
    failures: 0,
    nextAt: target.kind === 'mail' ? at + MAIL_EVERY_MS : 0,
    deliveredAt: at,
  }
}
