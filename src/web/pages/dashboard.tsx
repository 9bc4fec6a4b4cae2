import type { InferResponseType } from 'hono/client'
import type { ComponentChildren } from 'preact'
import { api, ask, askAs } from '../api.ts'
import { age, count, decimal } from '../format.ts'
import { useLoad } from '../load.ts'
import { isActive, type MessagePage, type Node, nodeByNum, nodeName, nodes, useNodes } from '../mesh.ts'
import { Age, now } from '../parts/age.tsx'
import { Empty } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { href } from '../router.ts'
import { can, isAdmin } from '../session.ts'
import { t } from '../strings.ts'
import { Activity } from './activity.tsx'
import { Checklist } from './checklist.tsx'

type Info = InferResponseType<typeof api.info.$get>

const POLL_MS = 10_000
const DAY_MS = 86_400_000
const LOW_BATTERY = 20

/** What matters at a glance, from across the room too. */
export function DashboardPage() {
  return (
    <Page title={t.dashboard.title}>
      {isAdmin.value && <Checklist />}
      {can('nodes', 'read') && <NodeFigures />}
      <div class="cards">
        {can('nodes', 'read') && <JustHeard />}
        <div class="stack">
          <Activity />
          {can('messages', 'read') && <LatestMessages />}
          {can('info', 'read') && <Radios />}
        </div>
      </div>
    </Page>
  )
}

function NodeFigures() {
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
      {can('messages', 'read') && <MessageFigure />}
      <Figure
        name={t.dashboard.lowBattery}
        value={count(low.length)}
        help={
          low.length === 0 ? t.dashboard.lowBatteryHelp : low.map((node) => node.shortName ?? node.nodeId).join(', ')
        }
        mood={low.length > 0 ? 'warn' : undefined}
      />
    </div>
  )
}

function MessageFigure() {
  const { data } = useLoad(
    () => askAs<MessagePage>(api.messages.$get({ query: { since: String(Date.now() - DAY_MS), limit: '1000' } })),
    [],
    POLL_MS,
  )
  const page = data.value
  const value = page === null ? t.common.none : `${count(page.messages.length)}${page.nextBefore === null ? '' : '+'}`
  return <Figure name={t.dashboard.messages24} value={value} help={t.dashboard.messagesHelp} />
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

const SHOWN = 10

function JustHeard() {
  useNodes()
  const all = nodes.value
  return (
    <Card
      title={t.dashboard.recent}
      actions={
        <a class="button small" href={href('/nodes')}>
          {t.dashboard.allNodes}
        </a>
      }
    >
      {all?.length === 0 ? (
        <Empty icon="nodes" title={t.nodes.empty}>
          <p>{t.nodes.emptyHelp}</p>
        </Empty>
      ) : (
        <ul class="rows tight">
          {all?.slice(0, SHOWN).map((node) => (
            <HeardRow node={node} key={node.nodeNum} />
          ))}
        </ul>
      )}
    </Card>
  )
}

function HeardRow({ node }: { node: Node }) {
  return (
    <li>
      <span class={isActive(node, now.value) ? 'badge live' : 'badge'} aria-hidden="true">
        {node.shortName ?? node.nodeId.slice(-4)}
      </span>
      <a class="grow clip" href={href(`/nodes/${node.nodeId}`)}>
        {nodeName(node)}
      </a>
      <span class="faint nowrap">
        {node.hopsAway === null ? '' : `${t.nodes.hopsAway(node.hopsAway)} · `}
        <Age at={node.lastHeard} />
      </span>
    </li>
  )
}

function LatestMessages() {
  const { data } = useLoad(() => askAs<MessagePage>(api.messages.$get({ query: { limit: '20' } })), [], POLL_MS)
  const texts = data.value?.messages.filter(({ emoji }) => !emoji).slice(0, 5)
  return (
    <Card
      title={t.dashboard.recentMessages}
      actions={
        <a class="button small" href={href('/messages')}>
          {t.dashboard.allMessages}
        </a>
      }
    >
      {texts?.length === 0 && <p class="faint">{t.messages.none}</p>}
      <ul class="rows tight">
        {texts?.map((message) => {
          const node = nodeByNum(message.fromNodeNum)
          return (
            <li key={message.id}>
              <div class="grow">
                <div class="faint">
                  {node === undefined ? message.fromNodeId : nodeName(node)} · <Age at={message.timestamp} />
                </div>
                <div class="pre">{message.text}</div>
              </div>
            </li>
          )
        })}
      </ul>
    </Card>
  )
}

function Radios() {
  const { data } = useLoad(() => ask(api.info.$get()), [], POLL_MS)
  const links = data.value?.links
  return (
    <Card title={t.dashboard.radios}>
      {links?.length === 0 && (
        <>
          <h3>{t.dashboard.noRadio}</h3>
          <p class="faint">{t.dashboard.noRadioHelp}</p>
        </>
      )}
      <ul class="rows tight">
        {links?.map((link) => (
          <RadioRow link={link} key={link.name} />
        ))}
      </ul>
    </Card>
  )
}

function RadioRow({ link }: { link: Info['links'][number] }) {
  const parts = [
    t.dashboard.since(age(link.since, now.value)),
    link.radio?.firmwareVersion ? t.dashboard.firmware(link.radio.firmwareVersion) : null,
    link.radio?.hwModel ?? null,
    link.reconnects > 0 ? t.dashboard.reconnects(count(link.reconnects)) : null,
  ]
  return (
    <li>
      <div class="grow">
        <div class={`link-state link-${link.state}`}>
          <span class="dot" aria-hidden="true" />
          <strong>{link.name}</strong> {t.shell.link[link.state]}
        </div>
        <div class="faint">{parts.filter((part) => part !== null).join(' · ')}</div>
        {link.reason !== null && <div class="bad">{link.reason}</div>}
      </div>
    </li>
  )
}
