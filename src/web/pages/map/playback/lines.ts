import type { Palette, Token } from '../../../parts/map/colour.ts'
import type { Frame } from '../../../parts/map/sheet.ts'
import { SIGNAL_COLOURS, signalOf } from '../../../parts/mesh/snr.ts'
import type { History } from './history.ts'

/** From so many lines on they are as thin as a pixel: a canvas draws those much faster, and they hide less. */
export const MANY_LINES = 400
/** Lines that a canvas draws efficiently in one path. */
const AT_ONCE = { thin: 1000, wide: 40 } as const
/** How much of a line is left: a new one, an older one, one that ends. */
const ALPHAS = [0.9, 0.5, 0.22] as const
/** Of one age, from the bottom to the top. */
const TOKENS = ['--faint', '--bad', '--warn', '--good'] as const satisfies readonly Token[]

/** Draws the lines and returns how many there are. Those of one colour and age together, the oldest first. */
export function drawLines({ pen, x, y, touches }: Frame, history: History, at: number, colours: Palette): number {
  // Four numbers for each line.
  const groups = ALPHAS.map(() => TOKENS.map((): number[] => []))
  let count = 0
  history.eachPair(at, (a, b, snr, age) => {
    const [x1, y1, x2, y2] = [x(a), y(a), x(b), y(b)]
    if (!touches(Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2), 4)) return
    count++
    groups[Math.min(2, Math.floor(age * 3))]?.[TOKENS.indexOf(SIGNAL_COLOURS[signalOf(snr)])]?.push(x1, y1, x2, y2)
  })
  const isThin = count > MANY_LINES
  const size = 4 * (isThin ? AT_ONCE.thin : AT_ONCE.wide)
  pen.lineWidth = isThin ? 1 : 1.5
  for (const [age, group] of [...groups.entries()].toReversed()) {
    pen.globalAlpha = ALPHAS[age] ?? 1
    for (const [token, ends] of group.entries()) {
      pen.strokeStyle = colours(TOKENS[token] ?? '--faint')
      for (let begin = 0; begin < ends.length; begin += size) {
        pen.beginPath()
        for (let index = begin; index < Math.min(ends.length, begin + size); index += 4) {
          pen.moveTo(ends[index] ?? 0, ends[index + 1] ?? 0)
          pen.lineTo(ends[index + 2] ?? 0, ends[index + 3] ?? 0)
        }
        pen.stroke()
      }
    }
  }
  pen.globalAlpha = 1
  return count
}
