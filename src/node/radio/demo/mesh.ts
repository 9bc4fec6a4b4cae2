import { Config_DeviceConfig_Role as Role } from '../../../meshtastic/gen/config_pb.ts'
import { HardwareModel } from '../../../meshtastic/gen/hardware_pb.ts'
import { DAY_MS } from '../../../shared/time.ts'

/** A made-up node. It changes while the demo runs. */
export type DemoNode = {
  readonly nodeNum: number
  longName: string
  shortName: string
  readonly hwModel: HardwareModel
  readonly role: Role
  readonly publicKey: Uint8Array<ArrayBuffer>
  /** 32: the exact position; less: the position of a cell. */
  readonly precisionBits: number
  readonly hopsAway: number
  readonly isMoving: boolean
  /** By order of the owner. */
  isFavorite: boolean
  isIgnored: boolean
  isMuted: boolean
  readonly hasWeather: boolean
  /** Has external power. */
  readonly isPowered: boolean
  readonly altitude: number
  /** When it was switched on, in milliseconds since the epoch. */
  readonly bootedAt: number
  /** dB at our antenna, on average. */
  readonly snr: number
  latitude: number
  longitude: number
  /** Percent. */
  battery: number
}

/** Middle of the made-up town. */
const TOWN = { latitude: 49.8917, longitude: 10.8871 }

/** Names, kilometres north and east of the middle, and hops to us. The first node is the radio itself. */
const PLACES = [
  ['Town Hall Gateway', 'HALL', 0, 0, 0, 'base'],
  ['Castle Hill Relay', 'CSTL', 1.2, -1.9, 0, 'router'],
  ['Water Tower North', 'WTWR', 4.1, 0.8, 0, 'router'],
  ['Mill Bridge', 'MILL', -0.4, 0.5, 0, 'home'],
  ['Baker Street 12', 'BK12', 0.3, 0.9, 0, 'home'],
  ['Station Roof', 'STAT', 0.8, 1.6, 0, 'home'],
  ['University Lab', 'UNI', -0.9, -0.6, 0, 'sensor'],
  ['Harbour Crane', 'HARB', 1.9, 2.4, 1, 'home'],
  ['Rose Garden', 'ROSE', -0.2, -0.9, 0, 'sensor'],
  ['Old Brewery', 'BREW', -0.7, 0.1, 0, 'home'],
  ['South Ridge Solar', 'SRDG', -5.2, 1.1, 1, 'router'],
  ['Anna on the bike', 'ANNA', -1.5, 1.3, 1, 'walker'],
  ['Rescue Van 3', 'RV3', 2.2, -0.4, 0, 'walker'],
  ['Hiker Tom', 'TOM', -3.8, -2.7, 2, 'walker'],
  ['Vineyard West', 'VINE', -1.1, -4.6, 1, 'sensor'],
  ['Farm Lindenhof', 'LIND', 3.3, 5.2, 2, 'home'],
  ['Airfield Weather', 'AIRF', 2.7, 3.9, 1, 'sensor'],
  ['Forest Hut', 'HUT', -6.4, -3.1, 2, 'home'],
  ['Quarry Lake', 'LAKE', 5.8, -2.2, 2, 'sensor'],
  ['River Gauge 7', 'RG07', 0.1, 3.1, 1, 'sensor'],
  ['Schoolyard', 'SCHL', -1.8, 0.7, 1, 'home'],
  ['Allotment 44', 'AL44', 1.4, -3.2, 1, 'home'],
  ['Night Owl', 'OWL🦉', -2.6, 2.0, 1, 'home'],
  ['Windmill Park', 'WIND', 6.9, 4.4, 3, 'router'],
  ['Valley Village', 'VALL', -8.3, 5.0, 3, 'home'],
] as const

type Kind = (typeof PLACES)[number][5]

const BOARDS = {
  base: [HardwareModel.STATION_G2],
  router: [HardwareModel.RAK4631, HardwareModel.SEEED_SOLAR_NODE, HardwareModel.NANO_G2_ULTRA],
  home: [HardwareModel.HELTEC_V3, HardwareModel.T_DECK, HardwareModel.TBEAM, HardwareModel.HELTEC_V4],
  sensor: [HardwareModel.RAK4631, HardwareModel.HELTEC_MESH_NODE_T114, HardwareModel.XIAO_NRF52_KIT],
  walker: [HardwareModel.TRACKER_T1000_E, HardwareModel.T_ECHO, HardwareModel.WISMESH_TAG],
} as const satisfies Record<Kind, readonly HardwareModel[]>

const ROLES = {
  base: Role.CLIENT_BASE,
  router: Role.ROUTER,
  home: Role.CLIENT,
  sensor: Role.SENSOR,
  walker: Role.TRACKER,
} as const satisfies Record<Kind, Role>

/** The nodes of the demo, the same ones for the same `random`. `now` in milliseconds. */
export function createDemoNodes(random: () => number, now: number): DemoNode[] {
  return PLACES.map(([longName, shortName, north, east, hopsAway, kind], index) => {
    const boards = BOARDS[kind]
    return {
      nodeNum: 0xa0cb0001 + index * 0x0101,
      longName,
      shortName,
      hwModel: boards[Math.floor(random() * boards.length)] ?? HardwareModel.HELTEC_V3,
      role: ROLES[kind],
      publicKey: Uint8Array.from({ length: 32 }, () => Math.floor(random() * 256)),
      precisionBits: kind === 'home' && random() < 0.4 ? 15 : 32,
      hopsAway,
      isMoving: kind === 'walker',
      isFavorite: false,
      isIgnored: false,
      isMuted: false,
      hasWeather: kind === 'sensor',
      isPowered: kind === 'base' || (kind === 'home' && random() < 0.5),
      altitude: Math.round(240 + random() * (kind === 'router' ? 220 : 60)),
      bootedAt: now - Math.floor(random() * 20 * DAY_MS),
      snr: 8 - hopsAway * 3 - random() * 8,
      latitude: TOWN.latitude + north / 111.2,
      longitude: TOWN.longitude + east / 71.7,
      battery: Math.round(40 + random() * 60),
    }
  })
}

/** Messages of people in the demo. A line of one emoji is a reaction to the message before it. */
export const DEMO_CHAT = [
  'Good morning everybody ☀️',
  'Morning! 3 bars from the water tower today',
  '👍',
  'Anyone near the station? Need a range check',
  'Hearing you direct, SNR about 6',
  'Castle Hill is back after the battery swap',
  '🎉',
  'On the bike along the river, follow me on the map',
  'Testing from the forest hut, two hops?',
  'Two hops here as well, via South Ridge',
  'Rain gauge at the airfield shows 4 mm in the last hour',
  'Fog on the windmill park, panels are sleeping',
  'Meetup on Thursday at the old brewery, 19:00',
  '🍺',
  'I bring the spare antennas',
  'Is the channel always this busy in the evening?',
  'New solar node on the quarry lake, please say hello',
  'Hello quarry lake 👋',
  'Lost the link behind the ridge for ten minutes',
  'River is at 2.1 m and rising slowly',
  'Rescue exercise starts at 14:00, please keep the channel free',
  '👌',
  'Exercise is over, thank you all',
  'Good night from the night owl 🦉',
] as const
