import type { Clock } from '../../clock.ts'

/** Longer than this an app does not keep the page waiting, whatever it goes on writing. */
const MOST_MS = 600_000

/** Changes of settings by apps, which connect through the port of this radio. */
export type AppEdits = {
  /**
   * An app writes now. `isOpen`: it has begun an edit that it has not ended. The page waits until the radio has been read
   * after it, and at most for `ms` from now.
   */
  note(ms: number, isOpen: boolean): void
  /** Whether the page has to wait. */
  isGoing(): boolean
  /** The radio begins to tell its settings. */
  onReading(): void
  /** It has told them. */
  onRead(): void
}

export function createAppEdits({ now }: Pick<Clock, 'now'>): AppEdits {
  let going: { readonly since: number; readonly until: number; readonly isOpen: boolean; isReading: boolean } | null =
    null
  const current = () => {
    if (going !== null && (now() >= going.until || now() < going.since)) going = null
    return going
  }
  return {
    note(ms, isOpen) {
      const since = current()?.since ?? now()
      going = { since, until: Math.min(now() + ms, since + MOST_MS), isOpen, isReading: false }
    },
    isGoing: () => current() !== null,
    onReading() {
      if (going !== null) going.isReading = true
    },
    onRead() {
      if (going?.isReading === true && !going.isOpen) going = null
    },
  }
}
