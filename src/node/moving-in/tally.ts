import { type ImportReport, MAX_NAMES } from '../../app/system/moving-in/report.ts'
import { type Imported, IMPORTED_NAMES, type Loss, LOSS_NAMES } from '../../shared/moving-in.ts'

/** Counts what an import found, added and left out. */
export type Tally = {
  found(what: Imported, n?: number): void
  added(what: Imported, n?: number): void
  lost(what: Loss, name?: string | null, n?: number): void
  addedOf(what: Imported): number
  counts(): ImportReport['counts']
  losses(): ImportReport['losses']
}

export function createTally(): Tally {
  const found = new Map<Imported, number>()
  const added = new Map<Imported, number>()
  const losses = new Map<Loss, { n: number; readonly names: Set<string> }>()
  const add = (to: Map<Imported, number>, what: Imported, n: number) => to.set(what, (to.get(what) ?? 0) + n)
  return {
    found: (what, n = 1) => add(found, what, n),
    added: (what, n = 1) => add(added, what, n),
    lost(what, name = null, n = 1) {
      if (n === 0) return
      const loss = losses.get(what) ?? { n: 0, names: new Set<string>() }
      loss.n += n
      if (name !== null && loss.names.size < MAX_NAMES) loss.names.add(printable(name))
      losses.set(what, loss)
    },
    addedOf: (what) => added.get(what) ?? 0,
    counts: () =>
      IMPORTED_NAMES.flatMap((what) => {
        const rows = found.get(what) ?? 0
        return rows === 0 ? [] : [{ what, found: rows, added: added.get(what) ?? 0 }]
      }),
    losses: () =>
      LOSS_NAMES.flatMap((what) => {
        const loss = losses.get(what)
        return loss === undefined ? [] : [{ what, n: loss.n, names: [...loss.names] }]
      }),
  }
}

const MAX_NAME = 80

// A terminal obeys control characters, and the file may hold anything.
function printable(name: string): string {
  return name.replaceAll(/\p{C}/gu, '').slice(0, MAX_NAME)
}
