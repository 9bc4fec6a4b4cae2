import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { SendFailure } from '../../../app/base/outgoing/ports.ts'
import type { Probed } from '../../../app/system/copies/port.ts'
import type { Target } from '../../../app/system/copies/settings.ts'
import { fileOf } from './places/content.ts'
import { isSameDisk } from './places/folder.ts'
import { MARKER } from './places/mark.ts'
import type { Place } from './places/place.ts'
import { CopyFailure } from './places/problems.ts'

/** Writes a small file as a copy is written, finds it in the list, and deletes it. */
export async function probePlace(
  open: (target: Target) => Place,
  target: Target,
  dataDir: string,
  service: string,
): Promise<Probed> {
  const onDisk = target.kind === 'folder' && (await isSameDisk(target.settings.path, dataDir))
  const found = { canDelete: true, isSameDisk: onDisk }
  // A test leaves no marker: the disk may not have been mounted yet.
  const marker = target.kind === 'folder' ? join(target.settings.path, MARKER) : null
  const wasClaimed = marker === null || existsSync(marker)
  try {
    const place = open(target)
    if (marker !== null) await place.claim(service)
    const owner = await place.owner()
    if (owner !== null && owner !== service) throw new CopyFailure('foreign')
    return await tryPlace(place, found)
  } catch (error) {
    if (!(error instanceof SendFailure)) throw error
    return { ...found, problem: error.message }
  } finally {
    if (marker !== null && !wasClaimed) rmSync(marker, { force: true })
  }
}

async function tryPlace(place: Place, found: Omit<Probed, 'problem'>): Promise<Probed> {
  const name = `mesh-test-${randomBytes(6).toString('hex')}.txt`
  try {
    await place.send(name, fileOf(Buffer.from('A test of copies of backups. Delete this file.\n')), {
      upload: null,
      keep: async () => {},
      onSent: () => {},
    })
    await place.list()
  } catch (error) {
    if (!(error instanceof SendFailure)) throw error
    await place.remove(name).catch(() => {})
    return { ...found, problem: error.message }
  }
  // A thief with the credentials of the service shall perhaps not delete anything there.
  const canDelete = await place.remove(name).then(
    () => true,
    () => false,
  )
  return { ...found, canDelete, problem: null }
}
