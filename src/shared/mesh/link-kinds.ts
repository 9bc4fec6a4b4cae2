import { namesOf } from '../names.ts'

/**
 * The kinds of sources, and how packets come by each:
 * - `radio`: a radio of our own, on a connection of this service; it sends as well
 * - `feed`: a connection of this service that only listens
 * - `delivery`: another service delivers over the API
 */
export const SOURCES = {
  tcp: 'radio',
  mqtt: 'feed',
  ingest: 'delivery',
  demo: 'radio',
} as const satisfies Record<string, 'radio' | 'feed' | 'delivery'>

export type SourceKind = keyof typeof SOURCES
type Coming<How> = { [Kind in SourceKind]: (typeof SOURCES)[Kind] extends How ? Kind : never }[SourceKind]
export type OwnKind = Coming<'radio'>
export type LinkKind = Coming<'radio' | 'feed'>

export const SOURCE_KINDS = namesOf(SOURCES)
/** Connections of this service. */
export const LINK_KINDS = SOURCE_KINDS.filter(isLinkKind)
/** Radios of our own. */
export const OWN_KINDS = SOURCE_KINDS.filter(isOwnKind)

export function isLinkKind(kind: SourceKind): kind is LinkKind {
  return SOURCES[kind] !== 'delivery'
}

export function isOwnKind(kind: SourceKind): kind is OwnKind {
  return SOURCES[kind] === 'radio'
}
