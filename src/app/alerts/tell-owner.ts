import type { Ports } from '../context.ts'

/** Tells the pages of the owner that their alerts have changed. */
export function tellOwner({ events }: Pick<Ports, 'events'>, userId: number): void {
  events?.publish([{ kind: 'alert', data: {}, userId }])
}
