import type { Target } from '../../app/connections/settings.ts'
import { readPublicKeys } from '../../app/mesh/nodes/nodes.ts'
import { parseChannelKey, parsePrivateKey } from '../../meshtastic/config/configured-keys.ts'
import type { Configured } from './configured.ts'
import { createMqttLink } from './mqtt/mqtt.ts'
import { createDirectOpener } from './sending/direct-messages.ts'
import { connectHttp } from './transports/http.ts'
import { connectSerial } from './transports/serial.ts'
import { connectTcp } from './transports/tcp.ts'
import { createUdpLink } from './udp/udp.ts'

/**
 * What is opened for the settings of a connection. `onFingerprint`: called with the certificate that a device showed
 * while none was pinned.
 */
export function configure(name: string, target: Target, onFingerprint: (fingerprint: string) => void): Configured {
  const { kind, settings } = target
  switch (kind) {
    case 'tcp':
      return { kind, name, connect: () => connectTcp(settings) }
    case 'serial':
      return { kind, name, connect: () => connectSerial(settings) }
    case 'http':
      return { kind, name, connect: ({ clock }) => connectHttp({ ...settings, clock, onFingerprint }) }
    case 'mqtt':
      return {
        kind,
        name,
        open({ store, ...needs }) {
          const { username, password, keys, privateKeys, ...broker } = settings
          return createMqttLink({
            ...needs,
            ...broker,
            name,
            login: username === null ? null : { username, password: password ?? '' },
            keys: keysOf(keys),
            openDirect: createDirectOpener({
              privateKeys: privateKeysOf(privateKeys),
              publicKeysOf: (nodeNum) => readPublicKeys(store, nodeNum),
            }),
          })
        },
      }
    case 'udp':
      return {
        kind,
        name,
        open: ({ store: _store, ...needs }) =>
          createUdpLink({
            ...needs,
            name,
            localAddress: settings.interface,
            port: settings.port,
            keys: keysOf(settings.keys),
          }),
      }
  }
}

// They were checked when they were saved.
const keysOf = (texts: readonly string[]) => texts.flatMap((text) => parseChannelKey(text) ?? [])

function privateKeysOf(texts: readonly string[]): ReadonlyMap<number, Uint8Array> {
  return new Map(
    texts.flatMap((text) => {
      const parsed = parsePrivateKey(text)
      return parsed === null ? [] : [[parsed.nodeNum, parsed.key] as const]
    }),
  )
}
