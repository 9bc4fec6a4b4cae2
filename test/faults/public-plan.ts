import { z } from 'zod'

/** Messages to the process of the readers. */
export const commandSchema = z.enum(['go', 'rest'])

/** How many answers there were of each status. */
export const readersReport = z.record(z.string(), z.int())
