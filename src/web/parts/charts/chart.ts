import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Series } from '../../../app/mesh/telemetry/telemetry.ts'
import { clock, dateMinutes, shortDay } from '../../format.ts'
import { shownUnit } from '../../measure.ts'
import type { TimeSpan } from '../../state/range.ts'
import { nodeTexts } from '../../strings/mesh/node.ts'
import { t } from '../../strings.ts'
import { colour } from '../map/colour.ts'
import { isPower } from '../mesh/power.ts'
import { type Look, lookAt } from './looks.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'

export type { Series }

/** A measurement of a node. */
export type Line = {
  /** What tells it from the other lines of its chart. */
  readonly name: string
  /** The name of its node, where several are in one chart. */
  readonly node?: string
  /** Without one, its place among the lines decides. */
  readonly look?: Look
  readonly series: Series
}

export type Chart = {
  /** In at most two units, each with an axis of its own. */
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

/** The scales of the first unit, and of a second one. */
const SCALES = ['y', 'z'] as const
type Scale = (typeof SCALES)[number]

/**
 * Lines over time. A single one has a band from least to greatest where several measurements are in one point.
 */
export function createChart(box: HTMLElement): Chart {
  let plot: uPlot | null = null
  let redraw = () => {}
  // On a wall a chart fills its place.
  const heightOf = () => {
    const isFree = box.closest('.wall') === null
    const legend = plot?.root.querySelector('.u-legend')?.clientHeight ?? 0
    return isFree ? HEIGHT : Math.max(HEIGHT / 2, box.clientHeight - legend)
  }
  let letters = getComputedStyle(box).fontSize
  const fit = () => {
    // On a wall everything is larger.
    const { fontSize } = getComputedStyle(box)
    if (fontSize === letters) return plot?.setSize({ width: box.clientWidth, height: heightOf() })
    letters = fontSize
    return redraw()
  }
  const observer = new ResizeObserver(fit)
  observer.observe(box)
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  const recolour = () => redraw()
  scheme.addEventListener('change', recolour)
  return {
    show(lines, span) {
      redraw = () => {
        plot?.destroy()
        plot = new uPlot(optionsOf(lines, span, { box, width: box.clientWidth, height: HEIGHT }), dataOf(lines), box)
        // The legend has its height only once the chart has its width.
        queueMicrotask(fit)
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
      plot = null
    },
  }
}

type Column = (number | null)[]

/** The points of the lines at all of their times. */
export function dataOf(lines: readonly Line[]): uPlot.AlignedData {
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

/** Where a chart is drawn: its colours and its font are those of `box`; pixels. */
export type Frame = { readonly box: HTMLElement; readonly width: number; readonly height: number }

/** How uPlot draws the lines. */
export function optionsOf(lines: readonly Line[], span: TimeSpan, { box, width, height }: Frame): uPlot.Options {
  const [faint, line] = [colour('--faint', box), colour('--line', box)]
  const style = getComputedStyle(box)
  const letter = Math.round(Number.parseFloat(style.fontSize) * 0.75)
  const font = `${letter}px ${style.fontFamily}`
  const axis = { stroke: faint, font, ticks: { stroke: line, width: 1 } }
  const grid = { stroke: line, width: 1 }
  const units = unitsOf(lines)
  const scaleOf = ({ series: { unit } }: Line): Scale => SCALES[units.indexOf(shownUnit(unit).unit)] ?? 'z'
  const isBand = lines.length === 1 && hasBand(lines[0]?.series.series ?? [])
  const isPowered = (scale: Scale) =>
    lines.some(
      (one) =>
        scaleOf(one) === scale &&
        one.series.series.some((point) => isPower(one.series.metric, Math.max(...point.slice(1)))),
    )
  const edge = (label: string): uPlot.Series => ({
    label,
    stroke: 'transparent',
    points: { show: false },
    value: (_plot, value) => shownAs(value, units[0] ?? null, isPowered('y')),
  })
  const upright = units.slice(0, SCALES.length).map((unit, index) => {
    const scale = SCALES[index] ?? 'y'
    const powered = isPowered(scale)
    const label = (value: number) => shownAs(value, unit, powered)
    return { scale, powered, unit, label }
  })
  return {
    width,
    height,
    scales: {
      x: { range: [span.from / 1000, span.to / 1000] },
      ...Object.fromEntries(
        upright.map(({ scale, powered, unit }): [string, uPlot.Scale] => [
          scale,
          { range: (_plot, least, greatest) => (powered ? [0, POWER_AT + 4] : rangeOf(unit, least, greatest)) },
        ]),
      ),
    },
    axes: [
      { ...axis, grid, values: clockLabels(span.to - span.from) },
      ...upright.map(({ scale, powered, label }, index): uPlot.Axis => ({
        ...axis,
        scale,
        side: index === 0 ? 3 : 1,
        grid: index === 0 ? grid : { show: false },
        size: (_plot, labels: readonly string[] | null) =>
          Math.max(3, ...(labels ?? []).map(({ length }) => length)) * letter * 0.6 + 2 * letter,
        values: (_plot, splits) => splits.map(label),
        ...(powered && { splits: () => POWER_SPLITS }),
      })),
    ],
    cursor: { drag: { x: false, y: false }, ...(lines.length > 1 && { dataIdx: nearestKnown }) },
    legend: { live: true, markers: { dash: (plot, index) => markerOf(plot.series[index]?.dash ?? []) } },
    hooks: { setCursor: [tellLatest], draw: [tellLatest, (plot) => wordsAtSinglePoints(plot, lines.length)] },
    bands: isBand ? [{ series: [3, 2], fill: `color-mix(in srgb, ${colour('--accent', box)} 22%, transparent)` }] : [],
    series: [
      { label: t.common.when, value: (_plot, at) => (at === null ? t.common.none : dateMinutes(at * 1000)) },
      ...lines.map((one, index): uPlot.Series => {
        const { token, dash } = one.look ?? lookAt(index)
        const { unit } = shownUnit(one.series.unit)
        return {
          label: one.name,
          scale: scaleOf(one),
          stroke: colour(token, box),
          width: 2,
          dash: [...dash],
          spanGaps: false,
          value: (_plot, value) => shownAs(value, unit, one.series.metric.endsWith('.batteryLevel')),
          points: { size: 5, filter: lines.length > 1 ? lonelyOfSeveral : lonelyPoints },
        }
      }),
      ...(isBand ? [edge(nodeTexts.least), edge(nodeTexts.greatest)] : []),
    ],
  }
}

/** The units of the lines as this user reads them, each once. */
function unitsOf(lines: readonly Line[]): readonly (string | null)[] {
  return [...new Set(lines.map(({ series }) => shownUnit(series.unit).unit))]
}

/** `hasPower`: what lies above the full battery is external power. */
function shownAs(value: number | null | undefined, unit: string | null, hasPower: boolean): string {
  if (!isKnown(value)) return t.common.none
  if (hasPower && value > 100) return t.nodes.power
  return `${Number(value.toPrecision(4))}${unit === null ? '' : ` ${unit}`}`
}

function markerOf([dash]: readonly number[]): string {
  if (dash === undefined) return 'solid'
  return dash < 3 ? 'dotted' : 'dashed'
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
  for (const [index, values] of lines.slice(0, count).entries()) {
    const known = [...values.keys()].filter((at) => isKnown(values[at]))
    const at = known[0] ?? 0
    const [time, value] = [times[at], values[at]]
    if (known.length !== 1 || typeof time !== 'number' || typeof value !== 'number') continue
    const word = document.createElement('span')
    word.className = 'chart-word'
    word.textContent = nodeTexts.oneValue
    const left = plot.valToPos(time, 'x')
    const scale = plot.series[index + 1]?.scale ?? 'y'
    word.classList.toggle('before', left > plot.over.clientWidth / 2)
    word.style.left = `${left}px`
    word.style.top = `${plot.valToPos(value, scale)}px`
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
  return lonelyOfSeveral(plot, seriesIndex)
}

/** Dots on all points of several lines would hide their dashes. Each line has `undefined` at the times of the others. */
function lonelyOfSeveral(plot: uPlot, seriesIndex: number): number[] {
  const values = plot.data[seriesIndex] ?? []
  const own = [...values.keys()].filter((index) => values[index] !== undefined)
  const isGap = (place: number) => !isKnown(values[own[place] ?? -1])
  return own.filter((_, place) => !isGap(place) && isGap(place - 1) && isGap(place + 1))
}

/** In local time. At the start of a day, the day instead of the hour. */
function clockLabels(rangeMs: number) {
  const label = (at: number) => {
    const isDay = rangeMs > 2 * DAY_MS || (new Date(at).getHours() === 0 && new Date(at).getMinutes() === 0)
    return isDay ? shortDay(at) : clock(at)
  }
  return (_plot: uPlot, splits: readonly number[]) => splits.map((at) => label(at * 1000))
}
