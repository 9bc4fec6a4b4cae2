import { z } from 'zod'

/** What a flooder is asked to do. */
export const floodSchema = z.object({
  seconds: z.number(),
  /** Packets a second: of numbers made up, each new; of one of them that only writes; of real nodes in turn. */
  invented: z.number(),
  loud: z.number(),
  real: z.number(),
  realNodes: z.array(z.number()),
  firstInvented: z.number(),
  loudNode: z.number(),
})

/** What a flooder says: where its broker is, then what it has sent. */
export const floodReport = z.union([
  z.object({ url: z.string() }),
  z.object({ invented: z.number(), loud: z.number(), real: z.number() }),
])
