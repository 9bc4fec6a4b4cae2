/** A value with its labels; `suffix` names the parts of a histogram. */
export type Sample = {
  readonly suffix?: '_bucket' | '_sum' | '_count'
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

/** One metric in base units: seconds, bytes. Each set of labels occurs once. */
export type Family = {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly samples: readonly Sample[]
}

/** Media type of the text format (prometheus.io/docs/instrumenting/exposition_formats). */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Families without samples are left out. */
export function formatMetrics(families: readonly Family[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, type, help, samples }) => {
      const lines = samples.map(
        ({ suffix = '', labels, value }) => `${name}${suffix}${formatLabels(labels)} ${format(value)}`,
      )
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n')
    })
    .join('')
}

function formatLabels(labels: Sample['labels']): string {
  const pairs = Object.entries(labels ?? {}).map(([name, value]) => `${name}="${escape(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escape(value: string): string {
  return value.toWellFormed().replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function format(value: number): string {
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

/** A metric with one value, left out if the value is null. */
export function single(name: string, type: 'counter' | 'gauge', help: string, value: number | null): Family {
  return { name, type, help, samples: value === null ? [] : [{ value }] }
}

/** A metric whose labels are the values. */
export function info(name: `${string}_info`, help: string, labels: readonly NonNullable<Sample['labels']>[]): Family {
  return { name, type: 'gauge', help, samples: labels.map((each) => ({ labels: each, value: 1 })) }
}
