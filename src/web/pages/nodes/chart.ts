import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Series } from '../../../app/mesh/telemetry/telemetry.ts'
import { clock, dateMinutes, shortDay } from '../../format.ts'
import { shownUnit } from '../../measure.ts'
import { nodeTexts } from '../../strings/mesh/node.ts'
import { t } from '../../strings.ts'
import { colour } from '../../parts/map/colour.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/time.ts'

export type { Series }

export type Chart = {
  show(series: Series, name: string, rangeMs: number): void
  /** Puts the cursor on the point of this time, in milliseconds. */
  point(time: number): void
  destroy(): void
}

const HEIGHT = 240
/** A gap of this many usual intervals between two points is drawn as a gap. */
const GAP_STEPS = 2.5
/** Frequent reports are often late by more than their usual interval, so shorter pauses are not gaps. */
const MIN_GAP_MS = { raw: 10 * MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const

/** A line with a band from least to greatest where several measurements are in one point. */
export function createChart(box: HTMLElement): Chart {
  let plot: uPlot | null = null
  let redraw = () => {}
  const observer = new ResizeObserver(() => plot?.setSize({ width: box.clientWidth, height: HEIGHT }))
  observer.observe(box)
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  const recolour = () => redraw()
  scheme.addEventListener('change', recolour)
  return {
    show(series, name, rangeMs) {
      redraw = () => {
        plot?.destroy()
        const data = dataOf(series)
        plot = new uPlot(optionsOf(series, name, rangeMs, box.clientWidth), data, box)
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

function dataOf({ series, resolution, unit }: Series): uPlot.AlignedData {
  const { convert } = shownUnit(unit)
  const shown = (value: number | null) => (value === null ? null : convert(value))
  const times: number[] = []
  const [values, least, greatest]: [Column, Column, Column] = [[], [], []]
  const add = (time: number, value: number | null, min: number | null, max: number | null) => {
    times.push(time / 1000)
    values.push(shown(value))
    least.push(shown(min))
    greatest.push(shown(max))
  }
  const isBand = series.some((point) => point.length === 4)
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

/** Nodes report at different intervals, so the length of a gap depends on the node's own interval. */
function gapLimit(times: readonly number[], resolution: Series['resolution']): number {
  const steps = times.slice(1).map((time, index) => time - (times[index] ?? time))
  const usual = steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? DAY_MS
  return Math.max(MIN_GAP_MS[resolution], usual * GAP_STEPS)
}

function optionsOf(found: Series, name: string, rangeMs: number, width: number): uPlot.Options {
  const { series } = found
  const { unit } = shownUnit(found.unit)
  const [accent, faint, line] = [colour('--accent'), colour('--faint'), colour('--line')]
  const font = `12px ${getComputedStyle(document.body).fontFamily}`
  const axis = { stroke: faint, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } }
  const shown = (value: number | null) =>
    value === null ? t.common.none : `${Number(value.toPrecision(4))}${unit === null ? '' : ` ${unit}`}`
  const edge = (label: string): uPlot.Series => ({
    label,
    stroke: 'transparent',
    points: { show: false },
    value: (_plot, value) => shown(value),
  })
  const now = Date.now()
  const hasBand = series.some((point) => point.length === 4)
  return {
    width,
    height: HEIGHT,
    scales: {
      x: { range: [(now - rangeMs) / 1000, now / 1000] },
      y: { range: (_plot, least, greatest) => rangeOf(unit, least, greatest) },
    },
    axes: [
      { ...axis, values: clockLabels(rangeMs) },
      { ...axis, size: 72, values: (_plot, splits) => splits.map(shown) },
    ],
    cursor: { drag: { x: false, y: false } },
    legend: { live: true },
    hooks: { setCursor: [tellLatest], draw: [tellLatest] },
    bands: hasBand ? [{ series: [3, 2], fill: `color-mix(in srgb, ${accent} 22%, transparent)` }] : [],
    series: [
      { label: t.common.when, value: (_plot, at) => (at === null ? t.common.none : dateMinutes(at * 1000)) },
      {
        label: name,
        stroke: accent,
        width: 2,
        spanGaps: false,
        value: (_plot, value) => shown(value),
        points: { size: 5, filter: lonelyPoints },
      },
      ...(hasBand ? [edge(nodeTexts.least), edge(nodeTexts.greatest)] : []),
    ],
  }
}

/** Some space above and below the values, within the limits of the unit: no battery has 150 %. */
function rangeOf(unit: string | null, least: number, greatest: number): uPlot.Range.MinMax {
  const [low, high] = uPlot.rangeNum(least, greatest, 0.1, true)
  if (unit !== '%') return [low ?? least, high ?? greatest]
  // A radio with external power reports 101 %.
  return [Math.max(0, low ?? 0), greatest > 100 ? greatest : Math.min(100, high ?? 100)]
}

/** Without a cursor the legend shows the latest point. */
function tellLatest(plot: uPlot): void {
  if (typeof plot.cursor.idx !== 'number') plot.setLegend({ idx: plot.data[0].length - 1 }, false)
}

/**
 * A point between two gaps has no line to show it, so it is drawn even if there are too many points to draw them all.
 */
function lonelyPoints(plot: uPlot, seriesIndex: number, areAllShown: boolean): number[] | null {
  if (areAllShown) return null
  const values = plot.data[seriesIndex] ?? []
  const isMissing = (index: number) => values[index] === null || values[index] === undefined
  return [...values.keys()].filter((index) => !isMissing(index) && isMissing(index - 1) && isMissing(index + 1))
}

/** In local time. At the start of a day, the day instead of the hour. */
function clockLabels(rangeMs: number) {
  const label = (at: number) => {
    const isDay = rangeMs > 2 * DAY_MS || (new Date(at).getHours() === 0 && new Date(at).getMinutes() === 0)
    return isDay ? shortDay(at) : clock(at)
  }
  return (_plot: uPlot, splits: readonly number[]) => splits.map((at) => label(at * 1000))
}
