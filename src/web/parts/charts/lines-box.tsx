import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { dateTime, zoneName } from '../../format.ts'
import { shownUnit } from '../../measure.ts'
import { type Range, rangeKey, spanOf } from '../../state/range.ts'
import { nodeTexts } from '../../strings/mesh/node.ts'
import { t } from '../../strings.ts'
import { useLazyDrawing } from '../lazy-drawing.ts'
import { isPower } from '../mesh/power.ts'
import type { Line, Series } from './chart.ts'
import './charts.css'

type Props = {
  /** The same array as long as the lines are the same. */
  lines: readonly Line[]
  range: Range
  /** The chart in words, for those who can't see it; by default the latest value of each line. */
  label?: string
}

/** Lines over time. Arrow keys move along the points, and read them out. */
export function LinesBox({ lines, range, label = lines.map(inWords).join('; ') }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const { drawing: chart, hasFailed } = useLazyDrawing(box, async () => (await import('./chart.ts')).createChart)
  useEffect(() => chart.value?.show(lines, spanOf(range, Date.now())), [chart.value, lines, rangeKey(range)])
  const at = useSignal<number | null>(null)
  const kinds = lines.map(({ name, series: { metric, resolution } }) => `${name} ${metric} ${resolution}`).join()
  useEffect(() => {
    at.value = null
  }, [kinds])
  const step = (event: KeyboardEvent) => {
    const times = timesOf(lines)
    const last = times.length - 1
    const found = at.peek()
    // By time: other points may have come since.
    const next = times.findIndex((time) => time >= (found ?? Infinity))
    const now = next === -1 ? last + 1 : next
    const wanted = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key]
    if (wanted === undefined) return
    event.preventDefault()
    const time = times[Math.max(0, Math.min(last, wanted))]
    if (time === undefined) return
    at.value = time
    chart.peek()?.point(time)
  }
  const isBand = lines.length === 1 && lines.some(({ series }) => series.series.some((point) => point.length === 4))
  return (
    <>
      {hasFailed.value && <p class="bad">{nodeTexts.chartFailed}</p>}
      <div class="chart-keys" tabIndex={0} role="group" aria-label={nodeTexts.chartKeys} onKeyDown={step}>
        <div class={lines.length > 1 ? 'chart several' : 'chart'} ref={box} role="img" aria-label={label} />
        <p class="sr-only" role="status">
          {at.value !== null && pointText(lines, at.value)}
        </p>
      </div>
      <p class="about">
        {isBand && `${nodeTexts.chartBand} `}
        {nodeTexts.chartZone(zoneName())}
      </p>
    </>
  )
}

/** The times of all points, in order. */
function timesOf(lines: readonly Line[]): readonly number[] {
  const times = new Set(lines.flatMap(({ series }) => series.series.map(([time]) => time)))
  return [...times].toSorted((a, b) => a - b)
}

function pointText(lines: readonly Line[], at: number): string {
  const texts = lines.flatMap(({ name, series }) => {
    const point = series.series.find(([time]) => time === at)
    if (point === undefined) return []
    const [, least, greatest, average] = point
    const text = (value: number) => measured(value, series)
    if (lines.length > 1) return [`${name} ${text(average ?? least)}`]
    return greatest === undefined || average === undefined
      ? [nodeTexts.chartPoint(dateTime(at), text(least))]
      : [nodeTexts.chartPointBand(dateTime(at), text(average), text(least), text(greatest))]
  })
  return lines.length > 1 ? nodeTexts.chartPoint(dateTime(at), texts.join('; ')) : texts.join()
}

/** A value of a series with its unit, or what it means. */
export function measured(value: number, { metric, unit }: Pick<Series, 'metric' | 'unit'>): string {
  if (isPower(metric, value)) return t.nodes.powerHelp
  const shown = shownUnit(unit)
  return `${Number(shown.convert(value).toPrecision(4))}${shown.unit === null ? '' : ` ${shown.unit}`}`
}

function inWords({ name, series }: Line): string {
  const last = series.series.at(-1)?.at(-1)
  return `${name}: ${last === undefined ? t.common.none : measured(last, series)}`
}
