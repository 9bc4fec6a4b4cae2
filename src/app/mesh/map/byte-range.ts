/** Bytes from `first` to `last`, both included. */
export type ByteRange = { readonly first: number; readonly last: number }

/**
 * The part of `size` bytes that a Range header requests (RFC 9110, section 14). Null: all of it, also for a malformed
 * header, another unit or several ranges, which a server may ignore.
 */
export function readRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | null {
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header ?? '')
  if (match === null) return null
  const [, from = '', to = ''] = match
  if (from === '') {
    if (to === '') return null
    const length = Math.min(Number(to), size)
    return length === 0 ? 'unsatisfiable' : { first: size - length, last: size - 1 }
  }
  const first = Number(from)
  if (to !== '' && Number(to) < first) return null
  return first >= size ? 'unsatisfiable' : { first, last: to === '' ? size - 1 : Math.min(Number(to), size - 1) }
}
