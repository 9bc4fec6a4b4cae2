import { namesOf } from '../names.ts'

/**
 * The kinds of sources, and how packets come by each:
 * - `radio`: a radio of our own, on a connection of this service; it sends as well
 * - `simulated`: a radio that this service simulates, with a mesh around it; it stands in for the configured links
 * - `feed`: a connection of this service that only listens
 * - `delivery`: another service delivers over the API
 *
 * `setting`: what is set in the environment to have such a link; null: only the page sets it. Pages show it to people
 * who have none yet.
 */
export const SOURCES = {
  tcp: { how: 'radio', setting: 'MESHTASTIC_TCP=host:port' },
  serial: { how: 'radio', setting: null },
  http: { how: 'radio', setting: null },
  mqtt: { how: 'feed', setting: 'MESHTASTIC_MQTT_URL' },
  udp: { how: 'feed', setting: null },
  ingest: { how: 'delivery', setting: null },
  demo: { how: 'simulated', setting: 'DEMO=true' },
} as const satisfies Record<
  string,
  { how: 'radio' | 'simulated' | 'feed'; setting: string | null } | { how: 'delivery'; setting: null }
>

export type SourceKind = keyof typeof SOURCES
type Coming<How> = { [Kind in SourceKind]: (typeof SOURCES)[Kind]['how'] extends How ? Kind : never }[SourceKind]
export type OwnKind = Coming<'radio' | 'simulated'>
export type FeedKind = Coming<'feed'>
export type LinkKind = OwnKind | FeedKind

export const SOURCE_KINDS = namesOf(SOURCES)
/** Connections of this service. */
export const LINK_KINDS = SOURCE_KINDS.filter(isLinkKind)
/** Radios of our own. */
export const OWN_KINDS = SOURCE_KINDS.filter(isOwnKind)

export function isLinkKind(kind: SourceKind): kind is LinkKind {
  return SOURCES[kind].how !== 'delivery'
}

export function isOwnKind(kind: SourceKind): kind is OwnKind {
  return SOURCES[kind].how === 'radio' || isSimulated(kind)
}

/** Whether it exists only in this service. Then its data says nothing about the real world, not even the time. */
export function isSimulated(kind: SourceKind): boolean {
  return SOURCES[kind].how === 'simulated'
}

/** What to set in the environment for each kind of link of this type, as text for people. */
export function settingsFor(how: 'radio' | 'feed' | 'simulated'): string {
  const settings = LINK_KINDS.flatMap((kind) => (SOURCES[kind].how === how ? (SOURCES[kind].setting ?? []) : []))
  return settings.join(' or ')
}
