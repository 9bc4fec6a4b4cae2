import type { Ports } from '../../base/context.ts'

/** Notifies the owner's pages that their alerts have changed. */
export function tellOwner({ events }: Pick<Ports, 'events'>, userId: number): void {
  events?.publish([{ kind: 'alert', data: {}, userId }])
}
