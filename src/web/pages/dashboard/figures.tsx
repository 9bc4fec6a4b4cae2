import type { ComponentChildren } from 'preact'
import { count, decimal } from '../../format.ts'
import type { InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'
import { activeMs, isActive, type Node, nodes, shortNameOf, useNodes } from '../../state/mesh/nodes.ts'
import { now } from '../../parts/age.tsx'
import { can, isAnonymous } from '../../state/session.ts'
import { href } from '../../router.ts'
import { DAY_MS, SECOND_MS } from '../../../shared/time.ts'
import { nodesWith } from '../nodes/filters.tsx'
import { t } from '../../strings.ts'
import { AirTrend } from './air-trend.tsx'
import { silentOf } from './fell-silent.tsx'
import { Change, completeHours, Line } from './trend.tsx'

const LOW_BATTERY = 20
const RECENT_MS = 7 * DAY_MS

type Dashboard = InferResponseType<typeof api.dashboard.$get, 200>

/** The mesh in a few numbers, and how each has changed. */
export function NodeFigures({ found }: { found: Dashboard | null }) {
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
  const silent = silentOf(all, now.value)
  const direct = active.filter(({ hopsAway }) => hopsAway === 0).length
  const own = all.find(({ isLocal }) => isLocal) ?? null
  const isNew = ({ firstHeard }: Node) => now.value - firstHeard <= RECENT_MS
  const fresh = isKnown ? all.filter(isNew).length : 0
  const today = silent.filter(({ lastHeard }) => now.value - (lastHeard ?? 0) <= DAY_MS + activeMs.value).length
  return (
    <div class="figures" aria-busy={!isKnown}>
      <Figure
        name={t.dashboard.nodesActive}
        value={shown(active.length)}
        help={t.dashboard.ofKnown(shown(all.length))}
        to={nodesWith({ show: 'active' })}
        share={active.length / all.length}
        trend={fresh > 0 && t.dashboard.newNodes(fresh)}
      />
      <Figure
        name={t.dashboard.heardDirectly}
        value={shown(direct)}
        help={t.dashboard.heardHelp}
        to={nodesWith({ show: 'active', hops: '0' })}
        share={direct / active.length}
        trend={isKnown && t.dashboard.ofActive(shown(active.length))}
      />
      <Figure
        name={t.dashboard.utilization}
        value={mean === null ? t.common.none : `${decimal(mean)} %`}
        help={t.dashboard.utilizationHelp}
        to={nodesWith({ show: 'active', sort: 'channelUtilization', order: 'down' })}
        mood={mean !== null && mean > 25 ? 'bad' : mean !== null && mean > 15 ? 'warn' : undefined}
        trend={own !== null && can('info', 'read') && !isAnonymous.value && <AirTrend own={own} key={own.nodeNum} />}
      />
      {can('messages', 'read') && (
        <Figure
          name={t.dashboard.messages24}
          value={found === null ? t.common.none : count(found.counts.messages)}
          help={t.dashboard.messagesHelp}
          to="/messages"
          trend={found !== null && <MessageTrend {...found} />}
        />
      )}
      <Figure
        name={t.dashboard.silent}
        value={shown(silent.length)}
        help={silent.length === 0 ? t.dashboard.silentHelp : nameSome(silent)}
        to={nodesWith({ silent: 'inactive', heard: String(RECENT_MS / SECOND_MS) })}
        share={silent.length / all.length}
        trend={today > 0 && t.dashboard.silentToday(today)}
      />
      <Figure
        name={t.dashboard.lowBattery}
        value={shown(low.length)}
        help={low.length === 0 ? t.dashboard.lowBatteryHelp : nameSome(low)}
        to={nodesWith({ battery: String(LOW_BATTERY), sort: 'battery', order: 'up' })}
        mood={low.length > 0 ? 'warn' : undefined}
        share={low.length / all.length}
        trend={isKnown && t.dashboard.ofKnown(shown(all.length))}
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
  /** From 0 to 1, of all that could be counted. */
  share?: number
  /** How the number has changed, or what it is a part of. */
  trend?: ComponentChildren
}

function MessageTrend({ hours, dayBefore }: Dashboard) {
  return (
    <>
      <Line values={hours.map(({ messages }) => messages)} />
      {dayBefore !== null && <Change now={completeHours(hours, 'messages')} before={dayBefore.messages} />}
    </>
  )
}

function Figure(props: FigureProps) {
  return (
    <a class={`figure ${props.mood ?? ''}`} href={href(props.to)}>
      <span class="figure-name">{props.name}</span>
      <span class="figure-value">{props.value}</span>
      <span class="faint">{props.help}</span>
      {(props.trend !== undefined || props.share !== undefined) && (
        <span class="trend">
          {props.share !== undefined && (
            <span class="share" aria-hidden="true">
              <span style={{ width: `${100 * (Number.isFinite(props.share) ? props.share : 0)}%` }} />
            </span>
          )}
          {props.trend}
        </span>
      )}
    </a>
  )
}
