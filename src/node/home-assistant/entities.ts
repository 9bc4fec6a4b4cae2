import { shownName } from '../../app/alerts/world/node-names.ts'
import type { PublishedNode } from '../../app/mesh/nodes/published.ts'

/** Topics of one service at the broker. */
export type Topics = {
  /** Whether the service is there: `online` or `offline`. */
  readonly status: string
  /** The discovery messages and states of all nodes, for subscribing. */
  readonly all: readonly string[]
  config(nodeId: string): string
  state(nodeId: string): string
  /** Whether this service publishes there. */
  isOwn(topic: string): boolean
}

/**
 * Home Assistant reads `<prefix>/device/<node id>/<object id>/config`, both of letters, digits, hyphens and underscores
 * (home-assistant.io/integrations/mqtt, "Discovery topic").
 */
export function topicsOf(prefix: string, topic: string): Topics {
  const key = (nodeId: string) => nodeId.replace('!', '')
  const status = `${topic}/status`
  const own = new RegExp(`^(?:${prefix}/device/${topic}/[0-9a-f]{8}/config|${topic}/[0-9a-f]{8}/state)$`)
  return {
    status,
    all: [`${prefix}/device/${topic}/+/config`, `${topic}/+/state`],
    config: (nodeId) => `${prefix}/device/${topic}/${key(nodeId)}/config`,
    state: (nodeId) => `${topic}/${key(nodeId)}/state`,
    isOwn: (at) => at === status || own.test(at),
  }
}

type Described = {
  readonly topics: Topics
  /** HOME_ASSISTANT_TOPIC. */
  readonly topic: string
  readonly version: string
  readonly publicUrl: string | null
  /** The node has reported its power at some time. */
  readonly hasPower: boolean
}

/** The discovery message of a node: a device with its entities (same page, "Device discovery payload"; 2024.11 or newer). */
export function discoveryOf(node: PublishedNode, about: Described): string {
  const { topics, topic, version, publicUrl, hasPower } = about
  const { nodeId, hwModel, firmwareVersion } = node
  const id = `${topic}_${nodeId.replace('!', '')}`
  const entity = (key: string, name: string, platform: 'sensor' | 'binary_sensor', more: object) => ({
    [key]: { platform, unique_id: `${id}_${key}`, name, value_template: `{{ value_json.${key} }}`, ...more },
  })
  return JSON.stringify({
    device: {
      identifiers: [id],
      name: shownName(node),
      serial_number: nodeId,
      ...(hwModel !== null && { model: hwModel }),
      ...(firmwareVersion !== null && { sw_version: firmwareVersion }),
      ...(publicUrl !== null && { configuration_url: `${publicUrl}/nodes/${nodeId}` }),
    },
    origin: { name: 'mesh-monitoring-service', sw_version: version },
    components: {
      ...entity('last_heard', 'Last heard', 'sensor', { device_class: 'timestamp' }),
      ...entity('active', 'Active', 'binary_sensor', { device_class: 'connectivity' }),
      ...(hasPower && {
        ...entity('battery', 'Battery', 'sensor', {
          device_class: 'battery',
          unit_of_measurement: '%',
          state_class: 'measurement',
        }),
        ...entity('voltage', 'Voltage', 'sensor', {
          device_class: 'voltage',
          unit_of_measurement: 'V',
          state_class: 'measurement',
          suggested_display_precision: 2,
        }),
      }),
    },
    state_topic: topics.state(nodeId),
    availability_topic: topics.status,
    qos: 1,
  })
}

/** The values of the entities. Null is *unknown*. A battery on external power counts as full. */
export function stateOf({ lastHeard, power }: PublishedNode, activeSince: number): string {
  const { batteryLevel: battery = null, voltage = null } = power ?? {}
  return JSON.stringify({
    last_heard: lastHeard === null ? null : new Date(lastHeard).toISOString(),
    active: lastHeard !== null && lastHeard >= activeSince ? 'ON' : 'OFF',
    battery: battery === null ? null : Math.min(100, battery),
    // Nodes send 32-bit floats.
    voltage: voltage === null ? null : Number(voltage.toFixed(3)),
  })
}
