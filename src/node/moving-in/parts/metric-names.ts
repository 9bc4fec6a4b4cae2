import { knownMetrics } from '../../../meshtastic/payload/telemetry.ts'

/** How MeshMonitor names the metrics of each variant: as in the protocol, with these differences. */
const VARIANTS: readonly {
  readonly variant: string
  /** Before migration 77, and for variants without short names: a prefix with a dot. */
  readonly dotted: string
  /** Short names begin with this. */
  readonly prefix: string
  readonly renamed?: Readonly<Record<string, string>>
}[] = [
  { variant: 'deviceMetrics', dotted: 'device', prefix: '' },
  {
    variant: 'environmentMetrics',
    dotted: 'environment',
    prefix: '',
    renamed: {
      relativeHumidity: 'humidity',
      barometricPressure: 'pressure',
      voltage: 'envVoltage',
      current: 'envCurrent',
    },
  },
  { variant: 'airQualityMetrics', dotted: 'airQuality', prefix: '' },
  { variant: 'powerMetrics', dotted: 'power', prefix: '' },
  { variant: 'localStats', dotted: 'localStats', prefix: '' },
  { variant: 'healthMetrics', dotted: 'health', prefix: 'health' },
  { variant: 'hostMetrics', dotted: 'host', prefix: 'host' },
  { variant: 'trafficManagementStats', dotted: 'trafficManagement', prefix: 'tm' },
]

const PAXCOUNTER = {
  paxcounterWifi: 'paxcounter.wifi',
  paxcounterBle: 'paxcounter.ble',
  paxcounterUptime: 'paxcounter.uptimeSeconds',
} as const

/** Our name for each of the program's. Where two variants have a metric of one name, it is that of the first. */
export const METRIC_NAMES: ReadonlyMap<string, string> = new Map([
  ...VARIANTS.toReversed().flatMap(({ variant, dotted, prefix, renamed = {} }) =>
    knownMetrics().flatMap((metric): [string, string][] => {
      if (!metric.startsWith(`${variant}.`)) return []
      const leaf = metric.slice(variant.length + 1)
      const name = renamed[leaf] ?? leaf
      const short = prefix === '' ? name : `${prefix}${name.charAt(0).toUpperCase()}${name.slice(1)}`
      return [
        [`${dotted}.${leaf}`, metric],
        [short, metric],
      ]
    }),
  ),
  ...Object.entries(PAXCOUNTER),
])

/** Parts of positions. */
export const PLACE_NAMES: ReadonlySet<string> = new Set(['latitude', 'longitude', 'altitude'])

/** What the program works out itself, or keeps beside positions. */
const DERIVED: ReadonlySet<string> = new Set([
  'messageHops',
  'linkQuality',
  'timeOffset',
  'systemNodeCount',
  'systemDirectNodeCount',
  'snr_local',
  'snr_remote',
  'rssi',
  'sats_in_view',
  'ground_speed',
  'ground_track',
  'estimated_latitude',
  'estimated_longitude',
])

export function isDerived(name: string): boolean {
  return DERIVED.has(name) || name.startsWith('mc_')
}
