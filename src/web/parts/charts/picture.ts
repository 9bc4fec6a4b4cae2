import uPlot from 'uplot'
import { dateMinutes, zoneName } from '../../format.ts'
import type { TimeSpan } from '../../state/range.ts'
import { chartTexts } from '../../strings/mesh/charts.ts'
import { colour } from '../map/colour.ts'
import { dataOf, type Line, optionsOf } from './chart.ts'
import { lookAt } from './looks.ts'

const [WIDTH, HEIGHT] = [1200, 520]
const EDGE = 32
const LETTER = 16
const ROW = 26
const SAMPLE = 36

/** A chart as a PNG with its title, time and legend on white, whatever the colours of the page. Null: it cannot be made. */
export async function drawPicture(title: string, lines: readonly Line[], span: TimeSpan): Promise<Blob | null> {
  const box = document.createElement('div')
  box.className = 'chart-picture'
  box.style.fontSize = `${LETTER}px`
  document.body.append(box)
  try {
    return await pictureOf(title, lines, await plotIn(box, lines, span), span, box)
  } finally {
    box.remove()
  }
}

/** Resolves once the plot is drawn. */
async function plotIn(box: HTMLElement, lines: readonly Line[], span: TimeSpan): Promise<HTMLCanvasElement> {
  return new Promise((resolve) => {
    const options = optionsOf(lines, span, { box, width: WIDTH, height: HEIGHT })
    const plot = new uPlot(
      { ...options, legend: { show: false }, hooks: { draw: [({ ctx }) => resolve(ctx.canvas)] } },
      dataOf(lines),
      box,
    )
    box.append(plot.root)
  })
}

async function pictureOf(
  title: string,
  lines: readonly Line[],
  plot: HTMLCanvasElement,
  { from, to }: TimeSpan,
  box: HTMLElement,
): Promise<Blob | null> {
  const canvas = document.createElement('canvas')
  const context = canvas.getContext('2d')
  if (context === null) return null
  const { fontFamily } = getComputedStyle(box)
  const plain = `${LETTER}px ${fontFamily}`
  context.font = plain
  const entries = placed(
    lines.map(({ name }) => context.measureText(name).width),
    WIDTH,
  )
  const legendTop = EDGE + 3 * ROW + HEIGHT
  const scale = plot.width / WIDTH
  canvas.width = Math.round((WIDTH + 2 * EDGE) * scale)
  canvas.height = Math.round((legendTop + ((entries.at(-1)?.row ?? 0) + 1) * ROW + EDGE) * scale)
  context.scale(scale, scale)
  context.fillStyle = colour('--surface', box)
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.textBaseline = 'middle'
  const write = (text: string, left: number, top: number, font: string, token: string) => {
    context.font = font
    context.fillStyle = colour(token, box)
    context.fillText(text, left, top, WIDTH + EDGE - left)
  }
  write(title, EDGE, EDGE + ROW / 2, `600 ${LETTER * 1.4}px ${fontFamily}`, '--text')
  const when = `${chartTexts.span(dateMinutes(from), dateMinutes(to))} · ${zoneName()}`
  write(when, EDGE, EDGE + 1.6 * ROW, plain, '--faint')
  context.drawImage(plot, EDGE, EDGE + 2.5 * ROW, WIDTH, HEIGHT)
  for (const [index, { name, look = lookAt(index) }] of lines.entries()) {
    const { left = 0, row = 0 } = entries[index] ?? {}
    const [x, y] = [EDGE + left, legendTop + (row + 0.5) * ROW]
    context.strokeStyle = colour(look.token, box)
    context.lineWidth = 3
    context.setLineDash([...look.dash])
    context.beginPath()
    context.moveTo(x, y)
    context.lineTo(x + SAMPLE, y)
    context.stroke()
    write(name, x + SAMPLE + LETTER / 2, y, plain, '--text')
  }
  return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'))
}

/** The entries of a legend in rows. `widths`: of their texts. */
function placed(widths: readonly number[], most: number): readonly { readonly left: number; readonly row: number }[] {
  let [left, row] = [0, 0]
  return widths.map((text) => {
    const width = SAMPLE + text + 2.5 * LETTER
    if (left > 0 && left + width > most) [left, row] = [0, row + 1]
    const at = { left, row }
    left += width
    return at
  })
}
