import * as z from 'zod'

// What Home Assistant accepts, from its documentation (home-assistant.io/integrations/mqtt, .../sensor.mqtt,
// .../binary_sensor.mqtt, .../sensor) and not from the service: strict, so that a made-up option fails.

const template = z.string().regex(/^\{\{ value_json\.\w+ \}\}$/)
const common = { name: z.string().min(1), unique_id: z.string().min(1), value_template: template }
const measured = { state_class: z.literal('measurement'), suggested_display_precision: z.int().optional() }

const component = z.union([
  // A timestamp has neither a unit nor a state class.
  z.strictObject({ platform: z.literal('sensor'), device_class: z.literal('timestamp'), ...common }),
  z.strictObject({
    platform: z.literal('sensor'),
    device_class: z.literal('battery'),
    unit_of_measurement: z.literal('%'),
    ...common,
    ...measured,
  }),
  z.strictObject({
    platform: z.literal('sensor'),
    device_class: z.literal('voltage'),
    unit_of_measurement: z.enum(['V', 'mV', 'µV', 'kV', 'MV']),
    ...common,
    ...measured,
  }),
  z.strictObject({ platform: z.literal('binary_sensor'), device_class: z.literal('connectivity'), ...common }),
])

/** The payload of device discovery. */
export const discoverySchema = z.strictObject({
  device: z.strictObject({
    identifiers: z.array(z.string()).min(1),
    name: z.string().min(1),
    serial_number: z.string().optional(),
    model: z.string().optional(),
    sw_version: z.string().optional(),
    configuration_url: z.url({ protocol: /^https?$/ }).optional(),
  }),
  origin: z.strictObject({ name: z.string().min(1), sw_version: z.string().optional() }),
  components: z.record(z.string().regex(/^[a-zA-Z0-9_-]+$/), component),
  state_topic: z.string().regex(/^[^+#]+$/),
  availability_topic: z.string().regex(/^[^+#]+$/),
  qos: z.union([z.literal(0), z.literal(1), z.literal(2)]),
})

/** `<prefix>/<component>/[<node_id>/]<object_id>/config` */
export const DISCOVERY_TOPIC = /^homeassistant\/device\/(?:[a-zA-Z0-9_-]+\/)?[a-zA-Z0-9_-]+\/config$/

/** A state: a time with its zone, ON or OFF, and numbers. */
export const stateSchema = z.strictObject({
  last_heard: z.iso.datetime({ offset: true }).nullable(),
  active: z.enum(['ON', 'OFF']),
  battery: z.number().min(0).max(100).nullable(),
  voltage: z.number().nullable(),
})
