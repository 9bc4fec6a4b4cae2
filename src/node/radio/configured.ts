import type { Config } from '../../app/config/config.ts'
import { type FeedKind, isSimulated, LINK_KINDS, type OwnKind } from '../../shared/mesh/link-kinds.ts'
import type { ConfiguredRadio } from './connection.ts'
import { demoRadio } from './demo/demo.ts'
import type { ConfiguredFeed } from './link.ts'
import { configuredBroker } from './mqtt/configured-broker.ts'
import { tcpRadios } from './transports/tcp.ts'

/** A radio or a broker to connect to. */
export type Configured = ConfiguredRadio | ConfiguredFeed

/** The links of each kind in the configuration. */
const CONFIGURED: { readonly [Kind in OwnKind]: (config: Config) => readonly ConfiguredRadio[] } & {
  readonly [Kind in FeedKind]: (config: Config) => readonly ConfiguredFeed[]
} = {
  tcp: tcpRadios,
  serial: () => [],
  http: () => [],
  mqtt: configuredBroker,
  udp: () => [],
  demo: demoRadio,
}

/** The only list of the configured links. A simulated radio replaces all others, whose kinds are then in `replaced`. */
export function configuredLinks(config: Config): {
  readonly radios: readonly ConfiguredRadio[]
  readonly feeds: readonly ConfiguredFeed[]
  readonly replaced: readonly Configured['kind'][]
} {
  const all = LINK_KINDS.flatMap((kind): readonly Configured[] => CONFIGURED[kind](config))
  const simulated = all.filter(({ kind }) => isSimulated(kind))
  const used = simulated.length > 0 ? simulated : all
  return {
    radios: used.filter((link) => 'connect' in link),
    feeds: used.filter((link) => 'open' in link),
    replaced: [...new Set(all.flatMap((link) => (used.includes(link) ? [] : [link.kind])))],
  }
}

/** Whether any link is configured. */
export function hasLinks(config: Config): boolean {
  const { radios, feeds } = configuredLinks(config)
  return radios.length + feeds.length > 0
}
