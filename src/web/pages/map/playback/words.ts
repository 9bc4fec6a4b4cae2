import type { Palette } from '../../../parts/map/colour.ts'
import type { Frame } from '../../../parts/map/sheet.ts'
import { plain } from '../../../format.ts'
import type { History } from './history.ts'

/** How long a text stands beside its sender, in time of the viewer and at least in time of the mesh. */
const STANDS_MS = 4000
const LEAST_MS = 60_000
/** Texts at once, and letters of each. */
const MAX_TEXTS = 5
const MAX_LETTERS = 40
const [PADDING, HEIGHT, AWAY] = [6, 20, 14] as const

/** The latest texts beside those who sent them. */
export function drawWords({ pen, x, y }: Frame, history: History, at: number, speed: number, colours: Palette): void {
  const since = at - Math.max(LEAST_MS, STANDS_MS * speed)
  const senders = new Set<number>()
  pen.font = '13px system-ui, sans-serif'
  pen.textAlign = 'left'
  pen.textBaseline = 'middle'
  pen.lineWidth = 1
  for (const happening of history.latest(at, 4 * MAX_TEXTS)) {
    if (happening.t < since || senders.size === MAX_TEXTS) break
    if (happening.kind !== 'text' || senders.has(happening.message.fromNodeNum)) continue
    const { fromNodeNum, text } = happening.message
    const spot = history.placeOf(fromNodeNum, at)
    if (spot === null) continue
    senders.add(fromNodeNum)
    const words = shortened(plain(text))
    const [left, top] = [x(spot) + AWAY, y(spot) - AWAY - HEIGHT]
    pen.fillStyle = colours('--raised')
    pen.strokeStyle = colours('--accent')
    pen.beginPath()
    pen.roundRect(left, top, pen.measureText(words).width + 2 * PADDING, HEIGHT, 6)
    pen.fill()
    pen.stroke()
    pen.fillStyle = colours('--text')
    pen.fillText(words, left + PADDING, top + HEIGHT / 2 + 0.5)
  }
}

function shortened(text: string): string {
  const letters = [...text]
  return letters.length > MAX_LETTERS ? `${letters.slice(0, MAX_LETTERS - 1).join('')}…` : text
}
