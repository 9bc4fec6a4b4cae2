import type { AskElsewhere } from '../mesh/radios/radio.ts'
import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from '../base/context.ts'
import { AppError } from './errors.ts'

/** Forwards the request to the process with the radios, if that is another one. Throws `radio_unavailable`. */
export const whereTheRadioIs = asking((elsewhere) =>
  elsewhere().then((answer) => {
    if (answer === null)
      throw new AppError('radio_unavailable', 'No instance of this service has the radio at the moment')
    return answer
  }),
)

/** As above, but returns what is known here if no process runs the radios. */
export const preferWhereTheRadioIs = asking((elsewhere) => elsewhere().catch(() => null))

/** Follows the access rule and the validators: only permitted, valid requests are forwarded. */
function asking(ask: (elsewhere: AskElsewhere) => Promise<Response | null>): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const elsewhere = c.get('ctx').radio?.elsewhere?.(c) ?? null
    if (elsewhere === null) return next()
    const answer = await ask(elsewhere)
    if (answer === null) return next()
    // The entry in the audit log and the log of that process have its request id.
    c.set('ctx', { ...c.get('ctx'), requestId: answer.headers.get('x-request-id') ?? c.get('ctx').requestId })
    return answer
  }
}
