import { capital, humanize } from '../../format.ts'
import { measurementGroups, measurementTexts } from '../../strings/mesh/measurements.ts'

const NAMES: Readonly<Record<string, string>> = measurementTexts
const GROUPS: Readonly<Record<string, string>> = measurementGroups

const inWords = (text: string) => humanize(text.replaceAll(/([A-Z])/g, ' $1'))

/** A measurement of the API by its name in words; one that has none gets a generated name. */
function nameOf(name: string): string {
  const number = /\d+/.exec(name)?.[0]
  const numbered = number === undefined ? undefined : NAMES[name.replace(/\d+/, '#')]?.replace('#', number)
  return NAMES[name] ?? numbered ?? inWords(name)
}

/** `deviceMetrics.batteryLevel` as `Battery level`, with its group if `among` contains two metrics of that name. */
export function metricName(metric: string, among: readonly string[] = []): string {
  const [variant = '', name = metric] = metric.split('.')
  const hasTwin = among.some((other) => other !== metric && other.endsWith(`.${name}`))
  return capital(hasTwin ? `${nameOf(name)} (${GROUPS[variant] ?? inWords(variant).toLowerCase()})` : nameOf(name))
}
