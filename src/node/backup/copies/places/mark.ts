import type { Readable } from 'node:stream'
import { fileOf } from './content.ts'
import type { Place } from './place.ts'
import { CopyFailure } from './problems.ts'
import { textOf } from './requests.ts'

/**
 * The file that says whose copies are at a place. A folder without it gets no copies: a disk that is not mounted leaves
 * an empty folder, and copies in it would be on the disk from which they shall protect.
 */
export const MARKER = '.mesh-copies'

export const markerText = (service: string) =>
  `Copies of backups go here while this file is here.\nService ${service}\n`

/** The mark of a service in the text of such a file; null: an older version wrote none. */
export const ownerIn = (text: string): string | null => /^Service ([\da-f]{16})$/m.exec(text)?.[1] ?? null

/** `Place.owner` of a server. */
export async function readOwner(place: Pick<Place, 'read'>): Promise<string | null> {
  let body: Readable
  try {
    body = await place.read(MARKER)
  } catch (error) {
    if (error instanceof CopyFailure && error.problem === 'gone') return null
    throw error
  }
  return ownerIn(await textOf({ body }))
}

/** `Place.claim` of a server. */
export async function markPlace(place: Pick<Place, 'owner' | 'send'>, service: string): Promise<void> {
  const owner = await place.owner()
  if (owner === service) return
  if (owner !== null) throw new CopyFailure('foreign')
  await place.send(MARKER, fileOf(Buffer.from(markerText(service))), {
    upload: null,
    keep: async () => {},
    onSent: () => {},
  })
  // Somebody else may have done the same at the same time.
  if ((await place.owner()) !== service) throw new CopyFailure('foreign')
}
