import * as z from 'zod'
import type { Store } from '../../../db/store.ts'
import { MINUTE_MS } from '../../../shared/time.ts'
import { keepState, readState } from './state.ts'

/** The jobs that a platform triggers, with the time after which another run is late. */
export const JOBS = { upkeep: 40 * MINUTE_MS, retention: 40 * MINUTE_MS, survey: 40 * MINUTE_MS } as const
export type Job = keyof typeof JOBS

const run = z.object({ at: z.number(), ok: z.boolean() })
export const runsSchema = z.object({ upkeep: run.optional(), retention: run.optional(), survey: run.optional() })

/** Remembers when a triggered job ran. */
export async function noteRun(store: Store, job: Job, ok: boolean, at: number): Promise<void> {
  const known = (await readState(store, 'runs', runsSchema)) ?? {}
  await keepState(store, 'runs', { ...known, [job]: { at, ok } }, at)
}
