import { preference } from '../../../state/preferences.ts'
import { can, isAnonymous } from '../../../state/session.ts'

export const MEASURES = ['bestSnr', 'medianSnr', 'bestRssi', 'medianRssi', 'hops', 'age'] as const
/** What the cells of the coverage are coloured by. */
export type Measure = (typeof MEASURES)[number]

/** The choice of this user; empty: no coverage is shown. */
export const coverageChoice = preference<Measure | ''>(
  'map-coverage',
  '',
  (found) => MEASURES.find((known) => known === found) ?? '',
)

/** The log of packets, from which it comes, is not for people without an account. */
export const mayCover = () => can('info', 'read') && !isAnonymous.value
