import type { Traceroute } from '../../parts/mesh/traceroute.ts'
import { t } from '../../strings.ts'

type Hops = readonly (number | null)[]

/** How the route differs from that of the traceroute before, in words; none: it is the same, or there was none. */
export function changesOf({ route, routeBack, previous }: Traceroute, nameOf: (nodeNum: number | null) => string) {
  if (route === null || previous === null || previous === undefined) return []
  const towards = changeOf(previous.route, route, nameOf)
  // Without a route back, the reply says nothing about it.
  const isBackKnown = (routeBack?.length ?? 0) > 0 && previous.routeBack.length > 0
  const back = isBackKnown ? changeOf(previous.routeBack, routeBack ?? [], nameOf) : null
  return [towards, back === null ? null : t.routes.changedBack(back)].filter((words) => words !== null)
}

function changeOf(before: Hops, after: Hops, nameOf: (nodeNum: number | null) => string): string | null {
  if (before.length === after.length && before.every((hop, index) => hop === after[index])) return null
  const names = (hops: Hops) => hops.map(nameOf).join(', ')
  if (after.length === 0) return t.routes.nowDirect(names(before))
  if (before.length === 0) return t.routes.noLongerDirect(names(after))
  const gone = before.filter((hop) => !after.includes(hop))
  const added = after.filter((hop) => !before.includes(hop))
  if (gone.length > 0 && added.length > 0) return t.routes.nowBy(names(added), names(gone))
  if (added.length > 0) return t.routes.alsoBy(names(added))
  return gone.length > 0 ? t.routes.noLongerBy(names(gone)) : t.routes.otherOrder(names(after))
}
