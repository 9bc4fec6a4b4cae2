/** What a collector may be allowed to do for the service that it delivers to: names of COLLECTOR_DOWNLINK. */
export const DOWNLINK_KINDS = ['texts', 'traceroutes', 'requests', 'settings'] as const
export type DownlinkKind = (typeof DOWNLINK_KINDS)[number]

/** What a command makes a radio send, or change. */
export const COMMAND_KINDS = ['text', 'traceroute', 'request', 'settings'] as const
export type CommandKind = (typeof COMMAND_KINDS)[number]

/** What must be allowed for a command. */
export const KIND_OF_COMMAND = {
  text: 'texts',
  traceroute: 'traceroutes',
  request: 'requests',
  settings: 'settings',
} as const satisfies Record<CommandKind, DownlinkKind>

/**
 * The sections of a radio's settings that a collector shows and changes for others. None of them has a secret, decides about
 * access, or opens an interface of the radio; what is not in this list stays at the collector.
 */
export const DOWNLINK_SECTIONS = [
  'owner',
  'device',
  'position',
  'power',
  'display',
  'lora',
  'storeForward',
  'rangeTest',
  'telemetry',
  'cannedMessage',
  'neighborInfo',
  'ambientLighting',
  'detectionSensor',
  'externalNotification',
  'paxcounter',
  'statusmessage',
  'trafficManagement',
  'tak',
] as const

export function isDownlinkSection(section: string): section is (typeof DOWNLINK_SECTIONS)[number] {
  return DOWNLINK_SECTIONS.some((name) => name === section)
}

/**
 * Fields of those sections that are shown, and changed only beside the radio, by section. A licensed radio has no keys: its
 * firmware empties those of all channels. The others name pins, or what is wired to them.
 */
const KEPT_FIELDS: Readonly<Partial<Record<(typeof DOWNLINK_SECTIONS)[number], readonly string[]>>> = {
  owner: ['isLicensed'],
  device: ['buttonGpio', 'buzzerGpio'],
  position: ['rxGpio', 'txGpio', 'gpsEnGpio'],
  power: ['deviceBatteryInaAddress'],
  display: ['oled'],
  lora: ['serialHalOnly'],
  cannedMessage: [
    'rotary1Enabled',
    'updown1Enabled',
    'inputbrokerPinA',
    'inputbrokerPinB',
    'inputbrokerPinPress',
    'allowInputSource',
  ],
  detectionSensor: ['monitorPin', 'usePullup'],
  externalNotification: ['output', 'outputVibra', 'outputBuzzer', 'active', 'usePwm', 'useI2sAsBuzzer'],
}

/** Whether a command never changes a field. */
export function isKeptField(section: string, path: string): boolean {
  return isDownlinkSection(section) && KEPT_FIELDS[section]?.includes(path) === true
}

/** How long a command may wait for its collector. */
export const COMMAND_MS = 60_000
/** How long a collector's request for commands stays open. */
export const POLL_MS = 25_000
/** A collector that has not asked for this long is not there. */
export const LISTENING_MS = 40_000
/** The most characters of the values of a section, as JSON. */
export const MAX_SECTION_JSON = 4000
