/** What the map of a frame can show beside the nodes. */
export const EMBED_LAYERS = ['labels', 'clusters', 'precision', 'waypoints', 'tracks', 'links', 'routes'] as const
export type EmbedLayer = (typeof EMBED_LAYERS)[number]

/** The layers of a new profile. */
export const DEFAULT_EMBED_LAYERS: readonly EmbedLayer[] = ['labels', 'clusters', 'precision', 'waypoints']

export const MAX_EMBED_ZOOM = 20
/** Pixels. */
export const [MIN_FRAME, MAX_FRAME] = [100, 4000]
export const MAX_EMBED_PROFILES = 50
export const MAX_EMBED_ORIGINS = 20

/** The ID of a profile, as in the address of its frame. */
export const EMBED_PROFILE_ID: RegExp = /^[0-9a-f]{12}$/
