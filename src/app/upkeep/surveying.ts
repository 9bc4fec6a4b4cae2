import { type ClockWatch, isClockTrusted } from '../base/pacing/clock.ts'
import type { Ports } from '../base/context.ts'
import type { Share } from '../base/pacing/slice-share.ts'
import type { Pause } from '../base/pacing/slices.ts'
import { lookForFindings } from '../mesh/findings/look.ts'
import { summariseHearings } from '../mesh/history/hearings.ts'
import { forgetSurveyed } from '../mesh/survey/forget.ts'
import { surveyRoutes } from '../mesh/survey/route-links.ts'
import { surveyPackets } from '../mesh/survey/survey.ts'
import { promisedCutoffs } from '../retention/plan.ts'
import { readSettings } from '../settings/settings.ts'
import { DAY_MS } from '../../shared/time.ts'

type Needs = Pick<Ports, 'store' | 'log' | 'now'>

/** Looks for what is wrong in the mesh. */
export async function find({ store, log, now }: Needs, pause: Pause): Promise<void> {
  const findings = await lookForFindings(store, now(), pause)
  log.debug('Looked for findings', { findings })
}

/** Summarises who was heard when, and by whom. `parts` as for `summariseHearings`. */
export async function summarise({ store, log }: Needs, pause: Pause, share: Share, parts?: number): Promise<void> {
  const packets = await summariseHearings(store, pause, share, parts)
  if (packets > 0) log.debug('Packets summarised', { packets })
}

/** Keeps coverage and topology. */
export async function surveyMesh({ store, log, now }: Needs, pause: Pause, share: Share): Promise<void> {
  let goesOn = true
  const watched = async () => (goesOn = goesOn && (await pause()))
  const packets = await surveyPackets(store, watched, share)
  if (packets > 0) log.debug('Packets surveyed', { packets })
  if (goesOn) await surveyRoutes({ store, now }, watched, share)
}

/** Places and links that nothing confirmed for this long are not known any more; places no longer than positions. */
const PLACES_MS = 90 * DAY_MS
const LINKS_MS = 30 * DAY_MS

export async function forgetOldSurveys(
  { store, log, now, clockWatch }: Needs & { readonly clockWatch: ClockWatch | null },
  pause: Pause,
  share: Share,
): Promise<void> {
  const { positions } = promisedCutoffs(await readSettings(store), now())
  const places = Math.max(positions, now() - PLACES_MS)
  // Two confirmed times differ by less than a day.
  const future = isClockTrusted({ clockWatch }) ? { at: now(), from: now() + DAY_MS } : null
  const rows = await forgetSurveyed(store, { places, links: now() - LINKS_MS, future }, pause, share)
  if (rows > 0) log.debug('Old surveys forgotten', { rows })
}
