import { findDiffering, isAsBefore, type SectionPlan } from '../../../../meshtastic/config/change.ts'
import { type RawSection, sectionBytes } from '../../../../meshtastic/config/sections.ts'
import { listLeaves, readLeaf } from '../../../../meshtastic/config/values.ts'
import { encodeRestart } from '../../../../meshtastic/link/admin-packets.ts'
import { listWithheld } from '../../../../meshtastic/remote/asks.ts'
import { Ended, explain, isSameKey, type Needs, order, readFirmware, type Reading, readParts } from './talk.ts'

/** All in milliseconds. */
export const REMOTE_TIMINGS = {
  /** Firmware restarts 7 s after it has saved, and takes some more until it listens. */
  restartMs: 45_000,
  /** How long it may take until it answers again. */
  returnMs: 360_000,
} as const satisfies Record<string, number>

/** The first version that keeps its private key if a written section `security` is without it. */
const KEEPS_KEY = [2, 8] as const

/** Whether the section `security` may be written to this firmware over the mesh. */
export function keepsPrivateKey(version: string | null): boolean {
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number)
  return major > KEEPS_KEY[0] || (major === KEEPS_KEY[0] && minor >= KEEPS_KEY[1])
}

type Change = {
  readonly plan: SectionPlan
  /** The section on which the plan is based. */
  readonly base: RawSection
  /** The encoded steps, from the first to the command to save. */
  readonly steps: readonly Uint8Array[]
}

/**
 * Changes a section: read, begin, set, read what the node has in its memory, save, restart, read again. `onRead` gets
 * what the node has saved. Throws `Ended` with the outcome, always.
 */
export async function changeRemotely(needs: Needs, change: Change, onRead: (reading: Reading) => void): Promise<never> {
  const { plan, base, steps } = change
  const { section } = plan.section
  const prefixes = plan.section.parts.map(({ prefix }) => prefix)
  const commit = steps.at(-1)
  if (commit === undefined) throw new Error('a change without steps')
  const read = (attempts?: number) => readParts(needs, section, prefixes, attempts)
  needs.report('waiting_for_key')
  if (section === 'security' && !keepsPrivateKey((await readFirmware(needs)).version)) {
    throw new Ended('refused', 'old_firmware')
  }
  const first = await read()
  onRead(first)
  if (!isUnchanged(base, first)) throw new Ended('failed', 'other_values')
  needs.report('sent')
  const taken = await makeEdit(needs, plan, steps.slice(0, -1), first.passkey, read)
  needs.report('restarting')
  const saved = await order(needs, commit, taken.passkey)
  if (saved.kind !== 'delivered' && saved.kind !== 'silent')
    throw await undone(needs, taken.passkey, explainOrder(saved))
  throw await verify({ needs, plan, commit, taken, read, onRead }, saved.kind === 'delivered')
}

type Reader = (attempts?: number) => Promise<Reading>

/** Begins and sets, until the node has the new values in its memory. A session that has ended is renewed once. */
async function makeEdit(
  needs: Needs,
  plan: SectionPlan,
  steps: readonly Uint8Array[],
  firstKey: Uint8Array,
  read: Reader,
): Promise<Reading> {
  let passkey = firstKey
  for (let isRenewed = false; ; isRenewed = true) {
    const { problem, sent } = await sendAll(needs, steps, passkey)
    const isEnded = problem?.outcome.reason === 'bad_session' && !isRenewed
    if (problem !== null && !isEnded) {
      // Nothing was begun if the first message was refused, or never sent.
      const isUntouched = sent === 0 && problem.outcome.state !== 'timed_out'
      throw isUntouched ? problem : await undone(needs, passkey, problem)
    }
    const now = await readOrUndo(needs, passkey, read)
    const isIgnored = isAsBefore(plan, sectionOf(plan, now)) && !isSameKey(passkey, now.passkey)
    const isBlind = isIgnored && !isRenewed
    if (problem === null && missingOf(plan, now).length === 0 && !isBlind) return now
    const hasEnded = problem !== null || isIgnored
    if (isRenewed || !hasEnded) {
      const outcome = new Ended('refused', hasEnded ? 'bad_session' : 'not_taken', { differing: missingOf(plan, now) })
      throw await undone(needs, now.passkey, outcome)
    }
    passkey = now.passkey
  }
}

/** How many the node has, and why not all; null: it has all of them. */
async function sendAll(
  needs: Needs,
  steps: readonly Uint8Array[],
  passkey: Uint8Array,
): Promise<{ readonly sent: number; readonly problem: Ended | null }> {
  for (const [sent, step] of steps.entries()) {
    const result = await order(needs, step, passkey)
    if (result.kind !== 'delivered') return { sent, problem: explainOrder(result) }
  }
  return { sent: steps.length, problem: null }
}

function explainOrder(result: Exclude<Awaited<ReturnType<typeof order>>, { kind: 'delivered' }>): Ended {
  if (result.kind === 'answer' || result.kind === 'silent') return new Ended('timed_out', 'silent_midway')
  return explain(result)
}

async function readOrUndo(needs: Needs, passkey: Uint8Array, read: Reader): Promise<Reading> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof Ended)) throw error
    const { state } = error.outcome
    throw await undone(needs, passkey, state === 'timed_out' ? new Ended(state, 'silent_midway') : error)
  }
}

/** Ends an edit that was begun: only a restart without saving does. */
async function undone(needs: Needs, passkey: Uint8Array, problem: Ended): Promise<Ended> {
  const result = await order(needs, encodeRestart(), passkey, 1)
  if (result.kind === 'delivered') return problem
  const { state, reason, detail, differing } = problem.outcome
  const outcome = state === 'refused' || state === 'timed_out' ? state : 'unverified'
  return new Ended(outcome, 'midway_open', { detail: detail ?? reason, differing })
}

type Saving = {
  readonly needs: Needs
  readonly plan: SectionPlan
  readonly commit: Uint8Array
  /** What the node had in its memory before it was told to save. */
  readonly taken: Reading
  readonly read: Reader
  readonly onRead: (reading: Reading) => void
}

/** Reads until the node has restarted: its session has another passkey then. */
async function verify(saving: Saving, isSaid: boolean): Promise<Ended> {
  const { needs, commit, taken, read, onRead } = saving
  const deadline = needs.now() + REMOTE_TIMINGS.returnMs
  let isConfirmed = isSaid
  let isRepeated = false
  /** Answers that came before a restart. */
  let early = 0
  let unasked: Ended | null = null
  while (needs.now() < deadline) {
    if (!(await needs.wait(REMOTE_TIMINGS.restartMs))) throw explain({ kind: 'stopped' })
    const again = await readIfPossible(read)
    if (again instanceof Ended) {
      // It answers, but not to us: for example because our key is no longer an admin key.
      if (again.outcome.state === 'refused') {
        return unverified(again)
      }
      unasked = again.outcome.state === 'failed' ? again : null
      continue
    }
    if (!isSameKey(again.passkey, taken.passkey)) {
      onRead(again)
      return judge(saving, again, isConfirmed)
    }
    early += 1
    if (!isConfirmed && !isRepeated) {
      isRepeated = true
      isConfirmed = (await order(needs, commit, taken.passkey)).kind === 'delivered'
    } else if (early > 1) return new Ended('unverified', isConfirmed ? 'no_restart' : 'not_confirmed')
  }
  if (early > 0) return new Ended('unverified', 'no_restart')
  // Our own radio could not ask.
  return unasked === null ? new Ended('lost', 'not_back') : unverified(unasked)
}

function unverified({ outcome: { reason, detail } }: Ended): Ended {
  return new Ended('unverified', reason, { detail })
}

async function readIfPossible(read: Reader): Promise<Reading | Ended> {
  try {
    return await read(1)
  } catch (error) {
    if (error instanceof Ended) return error
    throw error
  }
}

function judge({ plan }: Saving, again: Reading, isConfirmed: boolean): Ended {
  const differing = missingOf(plan, again)
  if (differing.length > 0) {
    const isOld = isAsBefore(plan, sectionOf(plan, again))
    return isOld ? new Ended('refused', 'old_values', { differing }) : new Ended('differs', null, { differing })
  }
  if (!isConfirmed) return new Ended('unverified', 'not_confirmed')
  const withheld = withheldIn(plan, again)
  return plan.changes.every(({ leaf }) => withheld.has(leaf.path))
    ? new Ended('unverified', 'unreadable')
    : new Ended('applied', null)
}

function sectionOf({ section }: SectionPlan, { parts }: Reading): RawSection {
  return { ...section, parts }
}

/** Paths of requested values that it does not have, as far as they can be read. */
function missingOf(plan: SectionPlan, reading: Reading): string[] {
  const withheld = withheldIn(plan, reading)
  return findDiffering(plan, sectionOf(plan, reading)).filter((path) => !withheld.has(path))
}

function withheldIn(plan: SectionPlan, reading: Reading): ReadonlySet<string> {
  const section = sectionOf(plan, reading)
  const values = new Map(listLeaves(section).map((leaf) => [leaf.path, readLeaf(leaf)]))
  return listWithheld(section.section, values)
}

/** Whether these parts are as in the section that was read earlier, secrets included. */
function isUnchanged(base: RawSection, { parts }: Reading): boolean {
  return parts.every((part) => {
    const before = base.parts.filter(({ prefix }) => prefix === part.prefix)
    return Buffer.compare(sectionBytes({ ...base, parts: before }), sectionBytes({ ...base, parts: [part] })) === 0
  })
}
