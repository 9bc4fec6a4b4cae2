import type { ClockWatch } from '../../app/base/pacing/clock.ts'
import type { Heard } from '../../app/mesh/heard/heard.ts'
import { isOwnKind, isSimulated } from '../../shared/mesh/link-kinds.ts'

/** A radio of ours has its own clock, set by satellites or by its mesh. This service never sets it. */
export function hearClocks(clockWatch: Pick<ClockWatch, 'agree'>, batch: readonly Heard[]): void {
  for (const { source, event } of batch) {
    if (!isOwnKind(source.kind) || isSimulated(source.kind)) continue
    if (event.type !== 'packet' || event.replayed || event.packet.rxTime === null) continue
    clockWatch.agree(`the radio ${source.name}`, event.packet.rxTime)
  }
}
