import { catalog } from '../../../language.ts'
import { useSignal } from '@preact/signals'
import { METRIC_MINUTES } from '../../../../shared/alerts/alert-kinds.ts'
import { unitOf } from '../../../../shared/mesh/metric-units.ts'
import { duration, uncapital } from '../../../format.ts'
import { metricName } from '../../../parts/mesh/metric-name.ts'
import { measure } from '../../../measure.ts'
import { Field, Select } from '../../../parts/form/field.tsx'
import { alertTexts } from '../../../strings/alerts.ts'
import type { RuleOf } from '../rule.ts'
import { DurationField } from './duration-field.tsx'
import { ALL, MeasureField, WatchedFields, who } from './fields.tsx'
import type { FieldsProps, KindView } from './kind.ts'

type Rule = RuleOf<'metric'>

/** The choice of a metric that is not offered. */
const OTHER = ''

/** Metrics that are offered; any other can be typed. */
const COMMON = [
  'deviceMetrics.batteryLevel',
  'deviceMetrics.voltage',
  'deviceMetrics.channelUtilization',
  'deviceMetrics.airUtilTx',
  'environmentMetrics.temperature',
  'environmentMetrics.relativeHumidity',
  'environmentMetrics.barometricPressure',
  'environmentMetrics.windSpeed',
  'environmentMetrics.distance',
  'powerMetrics.ch1Voltage',
  'airQualityMetrics.pm25Standard',
]

export const metricKind = catalog('metricKind', {
  name: 'A measurement passes a limit',
  sentence: (measurement: string, who: string, is: 'above' | 'below', limit: string) =>
    `Tell me when the ${measurement} of ${who} is ${is} ${limit}`,
  lasting: (sentence: string, time: string) => `${sentence} for ${time}`,
  /** Whether the name of a measurement keeps its capital letter within a sentence. */
  isCapital: 'no',
})

export const metric: KindView<Rule> = {
  name: metricKind.name,
  fresh: (common) => ({
    kind: 'metric',
    ...common,
    nodes: ALL,
    metric: 'deviceMetrics.batteryLevel',
    is: 'below',
    limit: 20,
    hysteresis: 5,
    forMinutes: 30,
  }),
  sentence({ nodes, metric: name, is, limit, forMinutes = 0 }) {
    const measurement = metricName(name, COMMON)
    const shown = metricKind.isCapital === 'no' ? uncapital(measurement) : measurement
    const sentence = metricKind.sentence(shown, who(nodes), is, measure(limit, unitOf(name), 1))
    return forMinutes > 0 ? metricKind.lasting(sentence, duration(forMinutes * 60)) : sentence
  },
  Fields,
}

function Fields({ rule, set }: FieldsProps<Rule>) {
  const isOther = useSignal(!COMMON.includes(rule.metric))
  const unit = unitOf(rule.metric)
  return (
    <>
      <WatchedFields rule={rule} set={set} />
      <Select
        label={alertTexts.metric}
        value={isOther.value ? OTHER : rule.metric}
        options={[
          ...COMMON.map((name) => [name, metricName(name, COMMON)] as const),
          [OTHER, alertTexts.otherMetric] as const,
        ]}
        onChange={(chosen) => {
          isOther.value = chosen === OTHER
          set({ metric: chosen === OTHER ? '' : chosen })
        }}
      />
      {isOther.value && (
        <Field
          label={alertTexts.metricId}
          hint={alertTexts.metricIdHint}
          value={rule.metric}
          required
          onInput={(event) => set({ metric: event.currentTarget.value })}
        />
      )}
      <div class="two">
        <Select
          label={alertTexts.is}
          value={rule.is}
          options={[
            ['below', alertTexts.below],
            ['above', alertTexts.above],
          ]}
          onChange={(is) => set({ is })}
        />
        <MeasureField label={alertTexts.limit} unit={unit} value={rule.limit} set={(limit) => set({ limit })} />
      </div>
      <MeasureField
        label={alertTexts.hysteresis}
        unit={unit}
        isDifference
        value={rule.hysteresis ?? 0}
        min={0}
        set={(hysteresis) => set({ hysteresis })}
      />
      <DurationField
        label={alertTexts.forTime}
        minutes={rule.forMinutes ?? 0}
        {...METRIC_MINUTES}
        set={(forMinutes) => set({ forMinutes })}
      />
    </>
  )
}
