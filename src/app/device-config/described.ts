import type * as z from 'zod'
import { listFields } from '../../meshtastic/config/fields.ts'
import { listRenewals } from '../../meshtastic/config/secrets.ts'
import { SECTION_SCHEMAS } from '../../meshtastic/config/sections.ts'
import type { Ports } from '../base/context.ts'
import type { sectionSchema } from './schemas.ts'

/** What an editor needs to know about a section apart from its values. */
export type DescribedSection = Pick<z.infer<typeof sectionSchema>, 'kind' | 'fields' | 'renewals'>

/** Every section of our table, by name. On the edge they come from a file that the build writes with `describeAll`. */
export async function readDescribed(_needs: Pick<Ports, 'store'>): Promise<ReadonlyMap<string, DescribedSection>> {
  return new Map(Object.entries((described ??= describeAll())))
}

let described: Readonly<Record<string, DescribedSection>> | null = null

export function describeAll(): Readonly<Record<string, DescribedSection>> {
  return Object.fromEntries(
    [...SECTION_SCHEMAS].map(([section, { kind }]) => [
      section,
      { kind, fields: describeFields(section), renewals: [...listRenewals(section)] },
    ]),
  )
}

function describeFields(section: string): DescribedSection['fields'] {
  return listFields(section).map(({ way: _way, enum: _enum, options, sizes, ...field }) => ({
    ...field,
    options: options === null ? null : [...options],
    sizes: sizes === null ? null : [...sizes],
  }))
}
