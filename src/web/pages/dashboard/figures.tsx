import type { ComponentChildren } from 'preact'
import { count, decimal } from '../../format.ts'
import { isActive, type Node, nodes, shortNameOf, useNodes } from '../../state/mesh/nodes.ts'
import { now } from '../../parts/age.tsx'
import { can } from '../../state/session.ts'
import { href } from '../../router.ts'
import { DAY_MS, SECOND_MS } from '../../../shared/time.ts'
import { nodesWith } from '../nodes/filters.tsx'
import { t } from '../../strings.ts'

const LOW_BATTERY = 20
const RECENT_MS = 7 * DAY_MS

/** The mesh in five numbers. `messages`: of the last day; null: unknown. */
export function NodeFigures({ messages }: { messages: number | null }) {
  useNodes()
  // Until they are loaded, the figures appear without values, at their final height.
  const isKnown = nodes.value !== null
  const all = nodes.value ?? []
  const shown = (n: number) => (isKnown ? count(n) : t.common.none)
  const active = all.filter((node) => isActive(node, now.value))
  const used = active.flatMap((node) => node.deviceMetrics?.channelUtilization ?? [])
  const mean = used.length === 0 ? null : used.reduce((sum, value) => sum + value, 0) / used.length
  // A node that fell silent because its battery is empty counts too.
  const low = all.filter((node) => (node.deviceMetrics?.batteryLevel ?? 100) < LOW_BATTERY)
  const silent = all.filter(
    (node) => !isActive(node, now.value) && node.lastHeard !== null && now.value - node.lastHeard <= RECENT_MS,
  )
  return (
    <div class="figures" aria-busy={!isKnown}>
      <Figure
        name={t.dashboard.nodesActive}
        value={shown(active.length)}
        help={t.dashboard.ofKnown(shown(all.length))}
        to={nodesWith({ show: 'active' })}
      />
      <Figure
        name={t.dashboard.heardDirectly}
        value={shown(active.filter(({ hopsAway }) => hopsAway === 0).length)}
        help={t.dashboard.heardHelp}
        to={nodesWith({ show: 'active', hops: '0' })}
      />
      <Figure
        name={t.dashboard.utilization}
        value={mean === null ? t.common.none : `${decimal(mean)} %`}
        help={t.dashboard.utilizationHelp}
        to={nodesWith({ show: 'active', sort: 'channelUtilization', order: 'down' })}
        mood={mean !== null && mean > 25 ? 'bad' : mean !== null && mean > 15 ? 'warn' : undefined}
      />
      {can('messages', 'read') && (
        <Figure
          name={t.dashboard.messages24}
          value={messages === null ? t.common.none : count(messages)}
          help={t.dashboard.messagesHelp}
          to="/messages"
        />
      )}
      <Figure
        name={t.dashboard.silent}
        value={shown(silent.length)}
        help={silent.length === 0 ? t.dashboard.silentHelp : nameSome(silent)}
        to={nodesWith({ silent: 'inactive', heard: String(RECENT_MS / SECOND_MS) })}
      />
      <Figure
        name={t.dashboard.lowBattery}
        value={shown(low.length)}
        help={low.length === 0 ? t.dashboard.lowBatteryHelp : nameSome(low)}
        to={nodesWith({ battery: String(LOW_BATTERY), sort: 'battery', order: 'up' })}
        mood={low.length > 0 ? 'warn' : undefined}
      />
    </div>
  )
}

/** More names than this would not help at a glance. */
const MAX_NAMED = 4

function nameSome(all: readonly Node[]): string {
  // Each name is isolated, because one written from right to left must not affect the others.
  const named = all.slice(0, MAX_NAMED).map((node) => `\u2068${shortNameOf(node)}\u2069`)
  return t.dashboard.andMore(named.join(', '), all.length - named.length)
}

type FigureProps = {
  name: string
  value: string
  help: ComponentChildren
  /** The path of the list that is counted. */
  to: string
  mood?: 'warn' | 'bad' | undefined
}

function Figure(props: FigureProps) {
  return (
    <a class={`figure ${props.mood ?? ''}`} href={href(props.to)}>
      <span class="figure-name">{props.name}</span>
      <span class="figure-value">{props.value}</span>
      <span class="faint">{props.help}</span>
    </a>
  )
}
