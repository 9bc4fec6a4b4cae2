import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Series } from '../../../app/mesh/telemetry/telemetry.ts'
import { clock, dateMinutes, shortDay } from '../../format.ts'
import { shownUnit } from '../../measure.ts'
import type { TimeSpan } from '../../state/range.ts'
import { nodeTexts } from '../../strings/mesh/node.ts'
import { t } from '../../strings.ts'
import { colour } from '../../parts/map/colour.ts'
import { isPower } from '../../parts/mesh/power.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'

export type { Series }

/** The measurements of one node, or of one of several. */
export type Line = { readonly name: string; readonly series: Series }

export type Chart = {
  /** Several lines have the same metric. */
  show(lines: readonly Line[], span: TimeSpan): void
  /** Puts the cursor on the point of this time, in milliseconds. */
  point(time: number): void
  destroy(): void
}

const HEIGHT = 240
/** A gap of this many usual intervals between two points is drawn as a gap. */
const GAP_STEPS = 2.5
/** Frequent reports are often late by more than their usual interval, so shorter pauses are not gaps. */
const MIN_GAP_MS = { raw: 10 * MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const

/** External power has a place of its own above the full battery. */
const POWER_AT = 112
const POWER_SPLITS = [0, 20, 40, 60, 80, 100, POWER_AT]

/** The look of each of several lines, which differ by more than their colours. */
const LOOKS = [
  ['--accent', []],
  ['--warn', [8, 4]],
  ['--age-1', [2, 3]],
  ['--bad', [12, 4]],
  ['--good', [8, 3, 2, 3]],
  ['--faint', [4, 6]],
] as const

/**
 * Lines over time. A single one has a band from least to greatest where several measurements are in one point.
 */
export function createChart(box: HTMLElement): Chart {
  let plot: uPlot | null = null
  let redraw = () => {}
  const observer = new ResizeObserver(() => plot?.setSize({ width: box.clientWidth, height: HEIGHT }))
  observer.observe(box)
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  const recolour = () => redraw()
  scheme.addEventListener('change', recolour)
  return {
    show(lines, span) {
      redraw = () => {
        plot?.destroy()
        plot = new uPlot(optionsOf(lines, span, box.clientWidth), dataOf(lines), box)
      }
      redraw()
    },
    point(time) {
      plot?.setCursor({ left: plot.valToPos(time / 1000, 'x'), top: plot.over.clientHeight / 2 })
    },
    destroy() {
      observer.disconnect()
      scheme.removeEventListener('change', recolour)
      plot?.destroy()
    },
  }
}

type Column = (number | null)[]

function dataOf(lines: readonly Line[]): uPlot.AlignedData {
  const [only] = lines
  return lines.length === 1 && only !== undefined
    ? columnsOf(only.series)
    : uPlot.join(lines.map(({ series }) => columnsOf(withoutBand(series))))
}

function withoutBand(found: Series): Series {
  return {
    ...found,
    series: found.series.map(([time, value, , average = value]): [number, number] => [time, average]),
  }
}

function columnsOf({ series, resolution, unit, metric }: Series): uPlot.AlignedData {
  const { convert } = shownUnit(unit)
  const shown = (value: number | null) => (value === null ? null : isPower(metric, value) ? POWER_AT : convert(value))
  const times: number[] = []
  const [values, least, greatest]: [Column, Column, Column] = [[], [], []]
  const add = (time: number, value: number | null, min: number | null, max: number | null) => {
    times.push(time / 1000)
    values.push(shown(value))
    least.push(shown(min))
    greatest.push(shown(max))
  }
  const isBand = hasBand(series)
  const limit = gapLimit(
    series.map(([time]) => time),
    resolution,
  )
  let before: number | null = null
  for (const [time, ...rest] of series) {
    if (before !== null && time - before > limit) add(before + 1000, null, null, null)
    const [first, max = first, average = first] = rest
    add(time, average, first, max)
    before = time
  }
  return isBand ? [times, values, least, greatest] : [times, values]
}

function hasBand(series: Series['series']): boolean {
  return series.some((point) => point.length === 4)
}

/** Nodes report at different intervals, so the length of a gap depends on the node's own interval. */
function gapLimit(times: readonly number[], resolution: Series['resolution']): number {
  const steps = times.slice(1).map((time, index) => time - (times[index] ?? time))
  const usual = steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? DAY_MS
  return Math.max(MIN_GAP_MS[resolution], usual * GAP_STEPS)
}

function optionsOf(lines: readonly Line[], span: TimeSpan, width: number): uPlot.Options {
  const found = lines[0]?.series
  const { unit } = shownUnit(found?.unit ?? null)
  const metric = found?.metric ?? ''
  const [faint, line] = [colour('--faint'), colour('--line')]
  const font = `12px ${getComputedStyle(document.body).fontFamily}`
  const axis = { stroke: faint, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } }
  const shown = (value: number | null | undefined) => {
    if (!isKnown(value)) return t.common.none
    if (isPower(metric, value)) return t.nodes.power
    return `${Number(value.toPrecision(4))}${unit === null ? '' : ` ${unit}`}`
  }
  const edge = (label: string): uPlot.Series => ({
    label,
    stroke: 'transparent',
    points: { show: false },
    value: (_plot, value) => shown(value),
  })
  const isBand = lines.length === 1 && hasBand(found?.series ?? [])
  const powered = lines.some(({ series }) =>
    series.series.some((point) => isPower(metric, Math.max(...point.slice(1)))),
  )
  return {
    width,
    height: HEIGHT,
    scales: {
      x: { range: [span.from / 1000, span.to / 1000] },
      y: { range: (_plot, least, greatest) => (powered ? [0, POWER_AT + 4] : rangeOf(unit, least, greatest)) },
    },
    axes: [
      { ...axis, values: clockLabels(span.to - span.from) },
      {
        ...axis,
        size: 72,
        values: (_plot, splits) => splits.map(shown),
        ...(powered && { splits: () => POWER_SPLITS }),
      },
    ],
    cursor: { drag: { x: false, y: false }, ...(lines.length > 1 && { dataIdx: nearestKnown }) },
    legend: { live: true },
    hooks: { setCursor: [tellLatest], draw: [tellLatest, (plot) => wordsAtSinglePoints(plot, lines.length)] },
    bands: isBand ? [{ series: [3, 2], fill: `color-mix(in srgb, ${colour('--accent')} 22%, transparent)` }] : [],
    series: [
      { label: t.common.when, value: (_plot, at) => (at === null ? t.common.none : dateMinutes(at * 1000)) },
      ...lines.map(({ name }, index): uPlot.Series => {
        const [token, dash] = LOOKS[index % LOOKS.length] ?? LOOKS[0]
        return {
          label: name,
          stroke: colour(token),
          width: 2,
          dash: [...dash],
          spanGaps: false,
          value: (_plot, value) => shown(value),
          points: { size: 5, filter: lonelyPoints },
        }
      }),
      ...(isBand ? [edge(nodeTexts.least), edge(nodeTexts.greatest)] : []),
    ],
  }
}

/** Some space above and below the values, within the limits of the unit: no battery has 150 %. */
function rangeOf(unit: string | null, least: number, greatest: number): uPlot.Range.MinMax {
  const [low, high] = uPlot.rangeNum(least, greatest, 0.1, true)
  return unit === '%' ? [Math.max(0, low ?? 0), Math.min(100, high ?? 100)] : [low ?? least, high ?? greatest]
}

/** A line of one value is a dot that looks like dirt, so it says what it is. `count`: of lines, after the times. */
function wordsAtSinglePoints(plot: uPlot, count: number): void {
  for (const old of plot.over.querySelectorAll('.chart-word')) old.remove()
  const [times, ...lines] = plot.data
  for (const values of lines.slice(0, count)) {
    const known = [...values.keys()].filter((at) => isKnown(values[at]))
    const at = known[0] ?? 0
    const [time, value] = [times[at], values[at]]
    if (known.length !== 1 || typeof time !== 'number' || typeof value !== 'number') continue
    const word = document.createElement('span')
    word.className = 'chart-word'
    word.textContent = nodeTexts.oneValue
    const left = plot.valToPos(time, 'x')
    word.classList.toggle('before', left > plot.over.clientWidth / 2)
    word.style.left = `${left}px`
    word.style.top = `${plot.valToPos(value, 'y')}px`
    plot.over.append(word)
  }
}

const isKnown = (value: number | null | undefined): value is number => value !== null && value !== undefined

/** Without a cursor the legend shows the latest point of each line. */
function tellLatest(plot: uPlot): void {
  const last = plot.data[0].length - 1
  if (typeof plot.cursor.idx !== 'number')
    plot.setLegend({ idxs: plot.data.map((_, line) => nearestKnown(plot, line, last)) }, false)
}

/** The index of a line's value that is nearest to a point: each node reports at times of its own. */
function nearestKnown(plot: uPlot, line: number, index: number): number {
  const values = plot.data[line] ?? []
  for (let away = 0; away < values.length; away++) {
    if (isKnown(values[index - away])) return index - away
    if (isKnown(values[index + away])) return index + away
  }
  return index
}

/**
 * A point between two gaps has no line to show it, so it is drawn even if there are too many points to draw them all.
 */
function lonelyPoints(plot: uPlot, seriesIndex: number, areAllShown: boolean): number[] | null {
  if (areAllShown) return null
  const values = plot.data[seriesIndex] ?? []
  return [...values.keys()].filter(
    (index) => isKnown(values[index]) && !isKnown(values[index - 1]) && !isKnown(values[index + 1]),
  )
}

/** In local time. At the start of a day, the day instead of the hour. */
function clockLabels(rangeMs: number) {
  const label = (at: number) => {
    const isDay = rangeMs > 2 * DAY_MS || (new Date(at).getHours() === 0 && new Date(at).getMinutes() === 0)
    return isDay ? shortDay(at) : clock(at)
  }
  return (_plot: uPlot, splits: readonly number[]) => splits.map((at) => label(at * 1000))
}
