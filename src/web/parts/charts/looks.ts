/** How a line is told apart: a design token for its colour, and the lengths of its dashes and gaps. */
export type Look = { readonly token: string; readonly dash: readonly number[] }

const look = (token: string, ...dash: number[]): Look => ({ token, dash })

/** Of several lines, which differ by more than their colours. `look-N` in `charts.css` shows the same. */
const LOOKS: readonly Look[] = [
  look('--accent'),
  look('--warn', 8, 4),
  look('--age-1', 2, 3),
  look('--bad', 12, 4),
  look('--good', 8, 3, 2, 3),
  look('--faint', 4, 6),
  look('--line-6'),
  look('--line-7', 8, 4),
  look('--line-8', 2, 3),
  look('--line-9', 12, 4),
]
const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [12, 3, 2, 3]]
const FIRST = look('--accent')

/** Of the only line, or of one of several nodes or several measurements. */
export const lookAt = (index: number): Look => LOOKS[index % LOOKS.length] ?? FIRST

/** Of a measurement of a node, among several of both: its colour says the node, its dashes the measurement. */
export const lookOf = (node: number, metric: number): Look => ({
  token: lookAt(node).token,
  dash: DASHES[metric % DASHES.length] ?? [],
})
