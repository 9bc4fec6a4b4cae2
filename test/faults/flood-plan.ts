import { z } from 'zod'

/** The task of a flooder. */
export const floodSchema = z.object({
  seconds: z.number(),
  /**
   * Packets a second: with invented numbers, each new; with a single one of them that sends only texts; with real nodes
   * in turn.
   */
  invented: z.number(),
  loud: z.number(),
  real: z.number(),
  realNodes: z.array(z.number()),
  firstInvented: z.number(),
  loudNode: z.number(),
})

/** The messages of a flooder: first the port of its broker, then the number of packets it has sent. */
export const floodReport = z.union([
  z.object({ url: z.string() }),
  z.object({ invented: z.number(), loud: z.number(), real: z.number() }),
])
