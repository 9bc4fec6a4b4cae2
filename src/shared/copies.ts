/** Kinds of places for encrypted copies of backups. */
export const PLACE_KINDS = ['s3', 'webdav', 'folder'] as const
export type PlaceKind = (typeof PLACE_KINDS)[number]

/** `sending`: it does not count yet. `made`: complete, checked. `missing`: it was there, and no longer is. */
export const COPY_STATES = ['sending', 'made', 'missing'] as const
export type CopyState = (typeof COPY_STATES)[number]

export const MAX_PLACES = 8
export const MAX_RECIPIENTS = 8
