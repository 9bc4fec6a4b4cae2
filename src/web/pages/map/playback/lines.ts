import type { Palette } from '../../../parts/map/colour.ts'
import type { Frame } from '../../../parts/map/sheet.ts'
import { SIGNAL_COLOURS, signalOf } from '../../../parts/mesh/snr.ts'
import type { History } from './history.ts'

/** From so many lines on they are as thin as a pixel: a canvas draws those much faster, and they hide less. */
export const MANY_LINES = 400
/** Lines that a canvas draws efficiently in one path. */
const AT_ONCE = { thin: 1000, wide: 40 } as const
/** How much of a line is left: a new one, an older one, one that ends. */
const ALPHAS = [0.9, 0.5, 0.22] as const

/** The oldest at the bottom. */
const LOOKS = ([2, 1, 0] as const).flatMap((alpha) =>
  (['--faint', '--bad', '--warn', '--good'] as const).map((token) => [token, alpha] as const),
)

/** Draws the lines and returns how many there are. Those of one colour and age together. */
export function drawLines({ pen, x, y, touches }: Frame, history: History, at: number, colours: Palette): number {
  const groups = new Map<string, number[]>()
  let count = 0
  history.eachPair(at, (a, b, snr, age) => {
    const [x1, y1, x2, y2] = [x(a), y(a), x(b), y(b)]
    if (!touches(Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2), 4)) return
    count++
    const key = `${SIGNAL_COLOURS[signalOf(snr)]} ${Math.min(2, Math.floor(age * 3))}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [x1, y1, x2, y2])
    else group.push(x1, y1, x2, y2)
  })
  const isThin = count > MANY_LINES
  pen.lineWidth = isThin ? 1 : 1.5
  for (const [token, alpha] of LOOKS) {
    const group = groups.get(`${token} ${alpha}`) ?? []
    pen.strokeStyle = colours(token)
    pen.globalAlpha = ALPHAS[alpha]
    const size = 4 * (isThin ? AT_ONCE.thin : AT_ONCE.wide)
    for (let begin = 0; begin < group.length; begin += size) {
      pen.beginPath()
      for (let index = begin; index < Math.min(group.length, begin + size); index += 4) {
        pen.moveTo(group[index] ?? 0, group[index + 1] ?? 0)
        pen.lineTo(group[index + 2] ?? 0, group[index + 3] ?? 0)
      }
      pen.stroke()
    }
  }
  pen.globalAlpha = 1
  return count
}
