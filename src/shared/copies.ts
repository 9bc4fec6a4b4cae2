/** Kinds of places for encrypted copies of backups. */
export const PLACE_KINDS = ['s3', 'webdav', 'folder'] as const
export type PlaceKind = (typeof PLACE_KINDS)[number]

/** `sending`: it does not count yet. `made`: complete, checked. `missing`: it was there, and no longer is. */
export const COPY_STATES = ['sending', 'made', 'missing'] as const
export type CopyState = (typeof COPY_STATES)[number]

export const MAX_PLACES = 8
export const MAX_RECIPIENTS = 8

/** Where a place is, as one text for the command line, without credentials. */
export function placeAddress(kind: PlaceKind, settings: Readonly<Record<string, unknown>>): string {
  const text = (field: string) => {
    const value = settings[field]
    return typeof value === 'string' ? value : ''
  }
  if (kind === 'folder') return text('path')
  if (kind === 'webdav') return `dav+${text('url')}`
  const fields = ['bucket', 'prefix', 'region'].map((field) => `${field}=${encodeURIComponent(text(field))}`)
  const query = settings['pathStyle'] === false ? [...fields, 'style=host'] : fields
  return `s3+${text('endpoint')}?${query.join('&')}`
}
