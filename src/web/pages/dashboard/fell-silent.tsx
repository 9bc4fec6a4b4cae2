import { DAY_MS } from '../../../shared/time.ts'
import { Age, now } from '../../parts/age.tsx'
import { Card } from '../../parts/page.tsx'
import { isActive, type Node, nodeName, nodes } from '../../state/mesh/nodes.ts'
import { t } from '../../strings.ts'

/** A node that has been silent for longer was switched off. */
const RECENT_MS = 7 * DAY_MS
/** More than fit on any screen. */
const MAX_SHOWN = 30

/** Nodes that fell silent in the last week, the latest first. */
export function silentOf(all: readonly Node[], at: number): readonly Node[] {
  return all
    .filter((node) => !isActive(node, at) && node.lastHeard !== null && at - node.lastHeard <= RECENT_MS)
    .toSorted((a, b) => (b.lastHeard ?? 0) - (a.lastHeard ?? 0))
}

/** Who fell silent, by name: for a wall, where nobody can open the list. */
export function FellSilent() {
  const silent = silentOf(nodes.value ?? [], now.value)
  return (
    <Card title={t.dashboard.silent}>
      {nodes.value !== null && silent.length === 0 && <p class="faint">{t.dashboard.nobodySilent}</p>}
      <ul class="rows tight">
        {silent.slice(0, MAX_SHOWN).map((node) => (
          <li key={node.nodeNum}>
            <span class="grow break" dir="auto">
              {nodeName(node)}
            </span>
            <span class="faint nowrap">
              <Age at={node.lastHeard} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}
