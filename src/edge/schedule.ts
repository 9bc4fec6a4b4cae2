import type { Share } from '../app/base/pacing/slice-share.ts'
import { eachTurn, type Pause } from '../app/base/pacing/slices.ts'
import { evaluateRules } from '../app/alerts/findings/evaluate.ts'
import { deliverDue, nextDue, tidyOutbox } from '../app/alerts/outbox/outbox.ts'
import { anchorAudit } from '../app/audit/anchor/anchor.ts'
import { sealAudit } from '../app/audit/chain.ts'
import { checkAuditHead } from '../app/audit/head.ts'
import { sweepProviderSessions } from '../app/accounts/oidc/ending.ts'
import { resealAll } from '../app/system/reseal.ts'
import { checkRelease } from '../app/system/status/release.ts'
import { sampleStorage } from '../app/system/status/storage.ts'
import { sweepSessions } from '../app/accounts/sessions/sessions.ts'
import type { Ports } from '../app/base/context.ts'
import { countWaiting } from '../app/mesh/survey/survey.ts'
import { mergeTextIndexes } from '../app/search/merging.ts'
import { rollUp } from '../app/mesh/telemetry/roll-up.ts'
import { find, forgetOldSurveys, summarise, surveyMesh } from '../app/upkeep/surveying.ts'
import { deleteOld, keepBounds, keepUp, warnOfRetention } from '../app/upkeep/upkeep.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../shared/time.ts'
import { dropUnneeded } from './unneeded.ts'

/**
 * Slices of one job in one run. A slice takes four queries (eight for nodes), and one run of a worker may make 1000
 * (developers.cloudflare.com/d1/platform/limits). The next run continues.
 */
const SLICES = 75
/** Slices of messages when an alarm rings: each up to eight, of about ten queries. */
const ALARM_SLICES = 10
/** Deliveries to AUDIT_ANCHOR_URL in one run. */
const DELIVERIES = 10
/** How often wrangler.toml fires the trigger. */
const EVERY_MS = 10 * MINUTE_MS
/** Slices of summaries in a run that deletes old data, each of four queries. */
const SUMMARY_SLICES = 60
/**
 * Slices of all tables together in such a run, mostly of two queries, and how many of them are kept for each table; the
 * counting of their rows is like one more. They leave 70 queries for what is done once in a run.
 */
const DELETING_SLICES = 345
const SLICES_OF_TABLE = 17
const TABLES = 16
/** A table that was worked through rests this long: looking for old rows reads rows, which D1 charges. */
const REST_MS = 12 * HOUR_MS

/**
 * Slices of the log of packets in one run, each of eight queries, and how many packets each one covers: of so many full
 * ones. Fewer and larger ones write fewer rows, because a row counts many packets.
 */
const SURVEY_SLICES = 20
export const SURVEY_SHARE = 20
/**
 * Who was heard is summarised in fewer slices, each of so many parts: 40,000 packets. If each has another sender or
 * receiver, they take 34 MB of the 128 MB of an isolate.
 */
const HEARING_PARTS = 4
const HEARING_SLICES = 8
/** Packets that do not wait for the last run of the hour. */
export const MANY_PACKETS = 80_000

type Needs = Pick<Ports, 'config' | 'store' | 'sessions' | 'log' | 'now' | 'connecting'>
type AlertNeeds = Omit<Parameters<typeof evaluateRules>[0], 'startedAt'> & Parameters<typeof deliverDue>[0]

/**
 * The work of the trigger of each ten minutes. Hours that are not over are not summarised: each summary writes rows, which
 * D1 charges, and charts read the latest measurements themselves.
 */
export async function runSchedule(ports: Needs, scheduledTime: number): Promise<void> {
  await dropUnneeded(ports.store)
  await sweepSessions(ports)
  await sweepProviderSessions(ports)
  await sealAudit(ports.store, countSlices())
  await keepUp(ports, countSlices(), undefined, startOfHour(scheduledTime))
  await keepBounds(ports, countSlices())
  await mergeTextIndexes(ports.store, countSlices())
  if (scheduledTime % HOUR_MS < EVERY_MS) {
    await checkAuditHead(ports)
    await resealAll(ports, countSlices())
    await warnOfRetention(ports)
  }
}

const startOfHour = (time: number) => time - (time % HOUR_MS)

/** The work of the trigger between those: applies the retention settings, with what they need summarised first. */
export async function runRetention(ports: Needs, scheduledTime: number): Promise<void> {
  const hours = await rollUp(ports.store, countSlices(SUMMARY_SLICES), undefined, startOfHour(scheduledTime))
  if (hours > 0) ports.log.debug('Measurements rolled up', { hours })
  await deleteOld(ports, eachTurn, undefined, { each: shareSlices(), restMs: REST_MS })
}

/**
 * The work of the trigger for what is known about the whole mesh: who was heard, coverage and topology in the last run of
 * an hour, or earlier if much waits; findings in the first one.
 */
export async function runSurvey(ports: Needs, scheduledTime: number): Promise<void> {
  const share = () => SURVEY_SHARE
  const minute = scheduledTime % HOUR_MS
  if (minute < EVERY_MS) {
    await forgetOldSurveys({ ...ports, clockWatch: null }, countSlices(SURVEY_SLICES), share)
    // Bounded by itself: half of it is stored nowhere.
    return find(ports, eachTurn)
  }
  if (minute < HOUR_MS - EVERY_MS && (await countWaiting(ports.store)) < MANY_PACKETS) return
  await surveyAll(ports, share)
}

/** One run of the summaries of the packets. `share` of a slice's packets as for `summarise`. */
export async function surveyAll(ports: Pick<Needs, 'store' | 'log' | 'now'>, share: Share): Promise<void> {
  await summarise(ports, countSlices(HEARING_SLICES), share, HEARING_PARTS)
  await surveyMesh(ports, countSlices(SURVEY_SLICES), share)
}

/** What each table may use: its own part, and what those before it left. */
function shareSlices(): () => Pause {
  let left = DELETING_SLICES
  let tables = TABLES
  return () => {
    tables--
    const kept = SLICES_OF_TABLE * Math.max(0, tables)
    return async () => --left > kept
  }
}

/** Seals the audit log and delivers what is due to AUDIT_ANCHOR_URL. Each delivery is one request of the run. */
export async function runAnchor(ports: Parameters<typeof anchorAudit>[0]): Promise<void> {
  if (ports.config.AUDIT_ANCHOR_URL === null) return
  await sealAudit(ports.store, countSlices())
  let left = DELIVERIES
  await anchorAudit(ports, async () => --left > 0)
}

/** Measures the storage, and asks for newer releases if the operator wants that. */
export async function runWatching(ports: Parameters<typeof checkRelease>[0] & Pick<Ports, 'disk'>): Promise<void> {
  await sampleStorage(ports)
  await checkRelease(ports)
}

/** Evaluates the alert rules and sends due messages. */
export async function runAlerts(ports: AlertNeeds): Promise<void> {
  // An isolate may start at any time, so its start says nothing about which nodes were silent.
  await evaluateRules({ ...ports, startedAt: null }, countSlices())
  await tidyOutbox(ports)
  const goesOn = countSlices()
  while ((await deliverDue(ports)) > 0) if (!(await goesOn())) return
}

/**
 * Sends due messages when the alarm of an object rings. Returns when it should ring again; null: nothing is due before
 * the next runs of the trigger.
 */
export async function deliverSoon(ports: Parameters<typeof deliverDue>[0]): Promise<number | null> {
  const { store, now } = ports
  for (let left = ALARM_SLICES; ; left--) {
    const at = now()
    if (left === 0) return at + SECOND_MS
    // What is due and was not sent has a fault: the trigger tries again.
    if ((await deliverDue(ports)) === 0) return nextDue(store, { after: at, until: at + 2 * MINUTE_MS })
  }
}

function countSlices(slices = SLICES): Pause {
  let left = slices
  return async () => --left > 0
}
