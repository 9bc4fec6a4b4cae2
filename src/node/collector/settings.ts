import * as z from 'zod'
import { shownSections } from '../../app/device-config/collected.ts'
import type { RadioDevice } from '../../app/device-config/device.ts'
import { backOff } from '../../shared/back-off.ts'
import { HOUR_MS, MINUTE_MS } from '../../shared/time.ts'

/** Sends a request to the service to which this one delivers; null: there was no answer that can be read. */
export type Ask = (
  path: string,
  body: object | null,
  timeoutMs?: number,
  method?: string,
) => Promise<{ readonly status: number; readonly json: unknown } | null>

const FIRST_MS = 4000
/** It may have lost them, for example by a restore. */
const AGAIN_MS = 6 * HOUR_MS
const answerSchema = z.object({ isKnown: z.boolean() })

type Shown = { readonly device: RadioDevice; readonly source: string }

/** Tells another service the settings of radios that it may change, whenever they are others than it knows. */
export function createSettingsTeller(ask: Ask, monotonic: () => number) {
  /** By source: what it knows, and since when. */
  const told = new Map<string, { readonly sections: string; readonly at: number }>()
  /** By source, while it does not take them. */
  const failed = new Map<string, { readonly failures: number; readonly until: number }>()
  return {
    async tell(radios: readonly Shown[]): Promise<void> {
      for (const { device, source } of radios) {
        const sections = shownSections(device.sections())
        const wanted = JSON.stringify(sections)
        const last = failed.get(source)
        const isEarly = last !== undefined && monotonic() < last.until
        const known = told.get(source)
        const isKnown = known?.sections === wanted && monotonic() - known.at < AGAIN_MS
        if (sections.length === 0 || isKnown || isEarly) continue
        const answer = await ask('/settings', { radio: source, sections }, undefined, 'PUT')
        const parsed = answerSchema.safeParse(answer?.json)
        if (parsed.success && parsed.data.isKnown) {
          told.set(source, { sections: wanted, at: monotonic() })
          failed.delete(source)
          continue
        }
        const failures = last?.failures ?? 0
        const pauseMs = backOff(failures, { firstMs: FIRST_MS, mostMs: MINUTE_MS, jitter: 1 })
        failed.set(source, { failures: failures + 1, until: monotonic() + pauseMs })
      }
    },
  }
}
