import { evaluateRules } from '../../app/alerts/findings/evaluate.ts'
import { deliverDue, type OutboxNeeds, tidyOutbox } from '../../app/alerts/outbox/outbox.ts'
import { anchorAudit } from '../../app/audit/anchor/anchor.ts'
import { noteChanges } from '../../app/accounts/mail/notices.ts'
import { lookUpRequests } from '../../app/accounts/mail/password-reset.ts'
import { sendLetters, tidyLetters } from '../../app/accounts/mail/sending.ts'
import type { Ports } from '../../app/base/context.ts'
import type { Pause } from '../../app/base/pacing/slices.ts'
import { type Clock, createTimer } from '../clock.ts'
import { MINUTE_MS } from '../../shared/time.ts'
import { createPace } from '../upkeep/pace.ts'

/** How often to look for due messages. */
const LOOK_MS = 1000

type Needs = OutboxNeeds &
  Pick<Ports, 'radio' | 'events' | 'syslog'> & {
    readonly mayWrite: () => boolean
    /** Monotonic, in milliseconds. */
    readonly monotonic: () => number
  }

/**
 * Evaluates the rules each minute, and sends due messages, including e-mails about accounts and anchors of the audit
 * log. `stop` waits for work in progress.
 */
export function startAlerting(needs: Needs, clock: Clock): { stop(): Promise<void> } {
  let isStopping = false
  const { log, mayWrite, monotonic } = needs
  const begun = monotonic()
  const repeat = (name: string, everyMs: number, work: () => Promise<unknown>) => {
    const timer = createTimer(clock)
    let running = Promise.resolve()
    const run = async () => {
      try {
        if (mayWrite()) await work()
      } catch (error) {
        log.error(`${name} failed`, { error })
      }
      if (!isStopping) timer.start(everyMs, begin)
    }
    const begin = () => {
      running = run()
    }
    timer.start(everyMs, begin)
    return async () => {
      timer.stop()
      await running
    }
  }
  const pause = (): Pause => createPace(() => !isStopping && mayWrite()).pause
  const ends = [
    repeat('Looking at alert rules', MINUTE_MS, async () => {
      // Based on how long this process has watched, regardless of changes of the clock.
      const startedAt = Math.round(needs.now() - (monotonic() - begun))
      await evaluateRules({ ...needs, startedAt }, pause())
      await tidyOutbox(needs)
      await tidyLetters(needs)
    }),
    repeat('Sending e-mails about accounts', LOOK_MS, async () => {
      const goesOn = pause()
      await noteChanges(needs)
      while ((await lookUpRequests(needs)) > 0) if (!(await goesOn())) return
      while ((await sendLetters(needs, () => !isStopping && mayWrite())) > 0) if (!(await goesOn())) return
    }),
    repeat('Sending alerts', LOOK_MS, async () => {
      const goesOn = pause()
      while ((await deliverDue(needs, () => !isStopping && mayWrite())) > 0) if (!(await goesOn())) return
    }),
    repeat('Anchoring the audit log', LOOK_MS, () => anchorAudit(needs, pause())),
  ]
  return {
    async stop() {
      isStopping = true
      await Promise.all(ends.map((end) => end()))
    },
  }
}
