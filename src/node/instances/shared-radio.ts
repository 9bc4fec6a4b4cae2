import type { Radio } from '../../app/context.ts'
import { AppError } from '../../app/http/errors.ts'

/** The radios, for as long as `own` answers those of this process; without them nothing can be sent. */
export function sharedRadio(own: () => Radio | null): Radio {
  return {
    links: () => own()?.links() ?? [],
    devices: () => own()?.devices() ?? [],
    waiting: () => own()?.waiting() ?? 0,
    collector: () => own()?.collector() ?? null,
    hearings: (nodeNum) => own()?.hearings(nodeNum) ?? [],
    lora: () => own()?.lora() ?? null,
    reserve(kind, asked) {
      const radio = own()
      if (radio === null) throw new AppError('radio_unavailable', 'Another instance has the radios')
      return radio.reserve(kind, asked)
    },
    withdraw: (isStale) => own()?.withdraw(isStale),
    forgetNode: (nodeNum) => own()?.forgetNode?.(nodeNum),
  }
}
