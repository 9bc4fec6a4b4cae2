import type { Value } from '../../csv.ts'
import type { Line } from './chart.ts'

/**
 * Lines as a table: a row for each time, and for each line its measurements, or minimum, maximum and average. In the units
 * of the service.
 */
export function tableOf(lines: readonly Line[]): readonly (readonly Value[])[] {
  const rows = new Map<number, Value[]>()
  const head: Value[] = ['time']
  for (const { node, series: found } of lines) {
    const { metric, unit, series } = found
    const isBand = series.some((point) => point.length === 4)
    const name = `${node === undefined ? '' : `${node}: `}${metric}${unit === null ? '' : ` (${unit})`}`
    const start = head.length - 1
    head.push(...(isBand ? [`min ${name}`, `max ${name}`, `average ${name}`] : [name]))
    for (const [time, ...values] of series) {
      const row = rows.get(time) ?? []
      const [value = null] = values
      const cells = isBand && values.length === 1 ? [value, value, value] : values
      for (const [index, cell] of cells.entries()) row[start + index] = cell
      rows.set(time, row)
    }
  }
  const width = head.length - 1
  const times = [...rows].toSorted(([a], [b]) => a - b)
  return [
    head,
    ...times.map(([time, row]) => [
      new Date(time).toISOString(),
      ...Array.from({ length: width }, (_, index) => row[index] ?? null),
    ]),
  ]
}

/** The name of a file without what file systems refuse; at most 80 characters. */
export function fileNameOf(title: string): string {
  const name = title.replaceAll(/[^\p{L}\p{N}.!_-]+/gu, '-').replaceAll(/^[-.]+|[-.]+$/g, '')
  return Array.from(name).slice(0, 80).join('') || 'chart'
}
