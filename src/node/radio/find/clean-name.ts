import { removeHidden } from '../../../shared/hidden-characters.ts'

const MAX_NAME = 80

/** A name as a device claims it, in one line that shows what it contains. */
export function cleanName(claimed: string): string {
  return [...removeHidden(claimed).replace(/\s+/g, ' ').trim()].slice(0, MAX_NAME).join('')
}
