import type { Config } from '../../../app/config/config.ts'
import { readPublicKeys } from '../../../app/mesh/nodes/nodes.ts'
import type { ConfiguredFeed } from '../link.ts'
import { createDirectOpener } from '../sending/direct-messages.ts'
import { createMqttLink, readAuthorities } from './mqtt.ts'

/** The broker of MESHTASTIC_MQTT_URL. Its name has neither user name nor password. */
export function configuredBroker(config: Config): readonly ConfiguredFeed[] {
  const url = config.MESHTASTIC_MQTT_URL
  if (url === null) return []
  const { protocol, host } = new URL(url)
  const name = `${protocol}//${host}`
  const privateKeys = new Map(config.MESHTASTIC_MQTT_PRIVATE_KEYS.map(({ nodeNum, key }) => [nodeNum, key]))
  return [
    {
      kind: 'mqtt',
      name,
      open: ({ store, ...needs }) =>
        createMqttLink({
          ...needs,
          name,
          url,
          ca: config.MESHTASTIC_MQTT_CA === null ? null : readAuthorities(config.MESHTASTIC_MQTT_CA),
          topics: [config.MESHTASTIC_MQTT_TOPIC],
          keys: config.MESHTASTIC_MQTT_KEYS,
          openDirect: createDirectOpener({ privateKeys, publicKeysOf: (nodeNum) => readPublicKeys(store, nodeNum) }),
        }),
    },
  ]
}
