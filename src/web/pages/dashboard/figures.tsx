import type { ComponentChildren } from 'preact'
import { count, decimal } from '../../format.ts'
import { isActive, type Node, nodes, shortNameOf, useNodes } from '../../state/mesh.ts'
import { now } from '../../parts/age.tsx'
import { can } from '../../state/session.ts'
import { t } from '../../strings.ts'

const LOW_BATTERY = 20

/** The mesh in five numbers. `messages`: of the last day; null while that is not known. */
export function NodeFigures({ messages }: { messages: number | null }) {
  useNodes()
  const all = nodes.value
  if (all === null) return <div class="figures" aria-busy="true" />
  const active = all.filter((node) => isActive(node, now.value))
  const used = active.flatMap((node) => node.deviceMetrics?.channelUtilization ?? [])
  const mean = used.length === 0 ? null : used.reduce((sum, value) => sum + value, 0) / used.length
  const low = active.filter((node) => (node.deviceMetrics?.batteryLevel ?? 100) < LOW_BATTERY)
  return (
    <div class="figures">
      <Figure
        name={t.dashboard.nodesActive}
        value={count(active.length)}
        help={t.dashboard.ofKnown(count(all.length))}
      />
      <Figure
        name={t.dashboard.heardDirectly}
        value={count(active.filter(({ hopsAway }) => hopsAway === 0).length)}
        help={t.dashboard.heardHelp}
      />
      <Figure
        name={t.dashboard.utilization}
        value={mean === null ? t.common.none : `${decimal(mean)} %`}
        help={t.dashboard.utilizationHelp}
        mood={mean !== null && mean > 25 ? 'bad' : mean !== null && mean > 15 ? 'warn' : undefined}
      />
      {can('messages', 'read') && (
        <Figure
          name={t.dashboard.messages24}
          value={messages === null ? t.common.none : count(messages)}
          help={t.dashboard.messagesHelp}
        />
      )}
      <Figure
        name={t.dashboard.lowBattery}
        value={count(low.length)}
        help={low.length === 0 ? t.dashboard.lowBatteryHelp : nameSome(low)}
        mood={low.length > 0 ? 'warn' : undefined}
      />
    </div>
  )
}

/** More names than these say no more at a glance. */
const MOST_NAMED = 4

function nameSome(all: readonly Node[]): string {
  // Each apart: a name from right to left must not turn the others.
  const named = all.slice(0, MOST_NAMED).map((node) => `\u2068${shortNameOf(node)}\u2069`)
  return t.dashboard.andMore(named.join(', '), all.length - named.length)
}

function Figure(props: { name: string; value: string; help: ComponentChildren; mood?: 'warn' | 'bad' | undefined }) {
  return (
    <div class={`figure ${props.mood ?? ''}`}>
      <div class="figure-name">{props.name}</div>
      <div class="figure-value">{props.value}</div>
      <div class="faint">{props.help}</div>
    </div>
  )
}
