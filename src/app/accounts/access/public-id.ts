const IDS_PER_MS = 4096

/** An id in the order of time, derived from visible data only. Ids of the database would also count hidden rows. */
export function publicId(timestamp: number, text: string): number {
  let hash = 0x811c9dc5
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193)
  return timestamp * IDS_PER_MS + ((hash >>> 0) % IDS_PER_MS)
}
