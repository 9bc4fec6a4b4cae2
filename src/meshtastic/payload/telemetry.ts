import type { DescMessage, Message } from '@bufbuild/protobuf'
import { isReflectList, reflect } from '@bufbuild/protobuf/reflect'
import { type DeviceMetrics, DeviceMetricsSchema, type Telemetry, TelemetrySchema } from '../gen/telemetry_pb.ts'

/** `variant.metric` in protobuf JSON names, e.g. `deviceMetrics.batteryLevel`, and its finite value. */
export type Metric = readonly [name: string, value: number]

/**
 * All numbers of a telemetry message, in field order. An optional 0 is a value; an implicit 0 is absent, as in
 * protobuf JSON, except in statistics, where it is a count. Repeated values get an index from the second on: `oneWireTemperature`, `oneWireTemperature2`, …
 */
export function listMetrics(telemetry: Telemetry): Metric[] {
  const { case: variant, value } = telemetry.variant
  if (variant === undefined) return []
  const schema = TelemetrySchema.fields.find((field) => field.localName === variant)?.message
  return schema === undefined ? [] : listFields(variant, schema, value)
}

/** The metrics of the separate `DeviceMetrics` in a NodeInfo, named as in telemetry. */
export function listDeviceMetrics(metrics: DeviceMetrics): Metric[] {
  return listFields('deviceMetrics', DeviceMetricsSchema, metrics)
}

/** Every metric that telemetry can have; of repeated values only the first. */
export function knownMetrics(): string[] {
  return TelemetrySchema.fields.flatMap(({ localName, message }) =>
    (message?.fields ?? []).map(({ jsonName }) => `${localName}.${jsonName}`),
  )
}

/** Whether telemetry can have this metric; of repeated values also a later one. */
export function isKnownMetric(name: string): boolean {
  const [, first = '', index = ''] = /^(.*?)([2-9]|[1-9]\d+)?$/.exec(name) ?? []
  const isOf = (wanted: string, mayRepeat: boolean) =>
    TelemetrySchema.fields.some(({ localName, message }) =>
      message?.fields.some(
        ({ jsonName, fieldKind }) => `${localName}.${jsonName}` === wanted && (!mayRepeat || fieldKind === 'list'),
      ),
    )
  return isOf(name, false) || (index !== '' && isOf(first, true))
}

/** Counters and loads of these variants have no field presence: an absent value is a measured 0. */
const COUNTING: ReadonlySet<string> = new Set(['localStats', 'hostMetrics'])
/** If measured, these are never 0, and an optional field is absent. */
const MEASURED: ReadonlySet<string> = new Set([
  'uptimeSeconds',
  'heapTotalBytes',
  'heapFreeBytes',
  'noiseFloor',
  'diskfree2Bytes',
  'diskfree3Bytes',
  'userString',
])

function isCounted(variant: string, field: string): boolean {
  return COUNTING.has(variant) && !MEASURED.has(field)
}

function listFields(variant: string, schema: DescMessage, message: Message): Metric[] {
  const reflected = reflect(schema, message)
  return schema.fields.flatMap((field) => {
    if (!reflected.isSet(field) && !isCounted(variant, field.localName)) return []
    const value: unknown = reflected.get(field)
    const values: unknown[] = isReflectList(value) ? [...value] : [value]
    return values.flatMap((each, index) => {
      const number = typeof each === 'bigint' ? Number(each) : each
      // A broken sensor reports NaN, which is no measurement and no valid JSON.
      if (typeof number !== 'number' || !Number.isFinite(number)) return []
      return [[`${variant}.${field.jsonName}${index === 0 ? '' : index + 1}`, number] satisfies Metric]
    })
  })
}
