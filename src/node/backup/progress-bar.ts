import { systemClock } from '../clock.ts'

const WIDTH = 30
const INTERVAL_MS = 100

export type ProgressBar = {
  /** `of` is null if the total is unknown. */
  readonly show: (done: number, of: number | null) => void
  /** A line above the bar. */
  readonly print: (line: string) => void
  /** Removes the bar from the screen. */
  readonly end: () => void
}

/** A bar on a terminal; elsewhere only the printed lines. */
export function createProgressBar(
  out: { readonly isTTY?: boolean; write(text: string): unknown },
  unit = 'rows',
): ProgressBar {
  let shownAt = -Infinity
  let isShown = false
  const erase = () => {
    if (isShown) out.write('\r\u001b[K')
    isShown = false
  }
  return {
    show: (done, of) => {
      const now = systemClock.monotonic()
      if (out.isTTY !== true || now - shownAt < INTERVAL_MS) return
      shownAt = now
      isShown = true
      out.write(`\r\u001b[K${bar(done, of, unit)}`)
    },
    print: (line) => {
      erase()
      out.write(`${line}\n`)
    },
    end: erase,
  }
}

function bar(done: number, of: number | null, unit: string): string {
  const number = done.toLocaleString('en')
  if (of === null) return `${number} ${unit}`
  const share = of === 0 ? 1 : Math.min(1, done / of)
  const filled = Math.round(share * WIDTH)
  return `[${'#'.repeat(filled)}${'-'.repeat(WIDTH - filled)}] ${Math.floor(share * 100)} %  ${number} ${unit}`
}
