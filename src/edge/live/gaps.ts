import { KEEP_ALIVE_MS } from '../../app/mesh/live/stream.ts'
import type { Note } from '../../app/mesh/live/event.ts'
import { objectOf, type Objects, type Passed } from './protocol.ts'

// What finds notes that never arrived. `skip` makes all readers load everything again.

/** Compares what changes in the database with what was told. */
export function watchChanges(skip: () => void) {
  let known: number | null = null
  let isTold = false
  let isLate = false
  return {
    noteTold() {
      isTold = true
    },
    /** Call it regularly, with a number that each change changes. The note of a change has until the next call. */
    look(revision: number) {
      const hasMoved = known !== null && revision !== known
      const isMissing = hasMoved && !isTold
      if (isMissing && isLate) skip()
      isLate = isMissing && !isLate
      if (!isLate) known = revision
      isTold = false
    },
  }
}

/** The latest isolates whose notes are counted. */
const MOST_ISOLATES = 500

/** Finds what an isolate told that never arrived, if a later note of it does. They may arrive in another order. */
export function countNotes(skip: () => void) {
  const isolates = new Map<string, number>()
  /** Those that later ones overtook, and whether that was so at the last look. */
  const awaited = new Map<string, boolean>()
  return {
    /** `isKnown`: the isolate says itself that earlier ones are missing. */
    noteTold({ by, count }: Passed, isKnown = false) {
      awaited.delete(`${by} ${count}`)
      const known = isolates.get(by) ?? count - 1
      isolates.delete(by)
      isolates.set(by, Math.max(known, count))
      const [oldest] = isolates.keys()
      if (oldest !== undefined && isolates.size > MOST_ISOLATES) isolates.delete(oldest)
      if (isKnown) return
      if (count - known > MOST_ISOLATES) return skip()
      for (let next = known + 1; next < count; next++) awaited.set(`${by} ${next}`, false)
    },
    /** Call it regularly: what is missing has until the next call but one. */
    look() {
      const isLost = [...awaited.values()].includes(true)
      for (const [note, isLate] of awaited) {
        if (isLate) awaited.delete(note)
        else awaited.set(note, true)
      }
      if (isLost) skip()
    },
  }
}

/** For the first object: passes on what it is told to the others, as long as they join again in time. */
export function passOn(objects: Objects, by: string) {
  const until = new Map<number, number>()
  let count = 0
  return {
    join(index: number): Passed {
      until.set(index, Date.now() + 3 * KEEP_ALIVE_MS)
      return { by, count }
    },
    hasAny: () => [...until.values()].some((end) => end > Date.now()),
    tell(notes: readonly Note[], isMissing: boolean) {
      count += 1
      for (const [index, end] of until) {
        // One that could not be told finds that out when it joins again.
        const drop = () => until.delete(index)
        if (end < Date.now()) drop()
        else objectOf(objects, index).tell({ notes, isMissing, passed: { by, count } }).catch(drop)
      }
    },
  }
}

/** For the others. */
export function follow(objects: Objects, index: number, skip: () => void) {
  let known: Passed | null = null
  const isBehind = ({ by, count }: Passed) => known !== null && (known.by !== by || known.count < count)
  return {
    async join() {
      const now = await objectOf(objects, 0).join(index)
      if (isBehind(now)) skip()
      known = now
    },
    noteTold(passed: Passed) {
      if (isBehind({ ...passed, count: passed.count - 1 })) skip()
      if (known?.by !== passed.by || known.count < passed.count) known = passed
    },
  }
}
