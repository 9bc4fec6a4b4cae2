import type * as z from 'zod'
import { MINUTE_MS } from '../../../shared/time.ts'
import type { TokenName } from '../../../shared/automation/tokens.ts'
import type { SpeakerFacts } from '../facts.ts'
import type { Needs, Planned } from './planned.ts'

/**
 * Runs that are later than this are skipped: the service does not catch up on runs that were due while it was stopped.
 */
export const GRACE_MS = 2 * MINUTE_MS

/** The path of a value in a rule. */
export type Path = readonly (string | number)[]
export type Problem = { readonly path: Path; readonly message: string }

/** When a scheduled rule runs: at an interval, or by a cron pattern in its time zone. */
export type Timing =
  | { readonly everyMs: number }
  | {
      readonly cron: string
      readonly path: Path
      /** The minimum distance between runs of a saved pattern, in local time. */
      readonly minGapMs: number
      /** The minimum distance between two actual runs, even if the clock jumps. */
      readonly leastGapMs: number
    }

/** A text that the answering radio heard. */
export type Said = {
  readonly from: number
  /** Whether it was sent on the broadcast channel, or to our radio. */
  readonly isDirect: boolean
  readonly channel: number
  readonly text: string
  readonly isReply: boolean
  /** Whether it is the alarm of a detection sensor. */
  readonly isSensor: boolean
  /** According to the radio's clock; null: it has none. */
  readonly rxTime: number | null
  readonly receivedAt: number
  readonly isReplayed: boolean
  /** Whether the sender seems to be forged. */
  readonly isSuspected: boolean
  /** Whether it passed through a broker, even if one of our radios delivered it. */
  readonly isViaMqtt: boolean
}

/** Data about a message besides its text. */
export type Signal = {
  readonly packetId: number
  readonly hopsAway: number | null
  readonly snr: number | null
  readonly rssi: number | null
}

/** The message that is answered. */
export type Question = {
  readonly said: Said
  readonly speaker: SpeakerFacts
  readonly signal: Signal
  readonly now: number
  /** The radio that heard it. */
  readonly radio: string | null
}

/** Each kind of rule is one file in this folder, which exports one of these. `../rules.ts` lists them. */
export type Kind<Rule> = TimedKind<Rule> | HeardKind<Rule>

type EveryKind<Rule> = {
  /** Tokens that its text may contain. */
  readonly tokens: readonly TokenName[]
  /** Its text with its tokens, and the path of the text; null: it sends none. */
  textOf(rule: Rule): { readonly path: Path; readonly text: string } | null
  /** Errors in a rule that the schema can't find, besides its text and its times. */
  problemsOf(rule: Rule): readonly Problem[]
}

/** Runs on a schedule. */
export type TimedKind<Rule> = EveryKind<Rule> & {
  readonly runs: 'timed'
  timingOf(rule: Rule): Timing
  /** The packets that a due rule would send; empty: there is no node to query. */
  plan(needs: Needs, rule: Rule, now: number): Promise<Planned[]>
}

/** Runs when a message arrives. */
export type HeardKind<Rule> = EveryKind<Rule> & {
  readonly runs: 'heard'
  /** Whether a rule listens to this message at all. */
  listensTo(rule: Rule, said: Said): boolean
  answer(needs: Needs, rule: Rule, question: Question): Promise<Planned>
}

/** A kind with the schema of its settings. */
export function timedKind<Schema extends z.ZodObject>(
  schema: Schema,
  kind: Omit<TimedKind<z.infer<Schema>>, 'runs'>,
): TimedKind<z.infer<Schema>> & { readonly schema: Schema } {
  return { runs: 'timed', schema, ...kind }
}

/** A kind with the schema of its settings. */
export function heardKind<Schema extends z.ZodObject>(
  schema: Schema,
  kind: Omit<HeardKind<z.infer<Schema>>, 'runs'>,
): HeardKind<z.infer<Schema>> & { readonly schema: Schema } {
  return { runs: 'heard', schema, ...kind }
}
