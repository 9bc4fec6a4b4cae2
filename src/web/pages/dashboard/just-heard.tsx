import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Age, now } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { href } from '../../router.ts'
import { isActive, type Node, nodeName, nodes, shortNameOf, useNodes } from '../../state/mesh/nodes.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'

const SHOWN = 6
const MAX_SHOWN = 30

export function JustHeard() {
  useNodes()
  const all = nodes.value
  const steady = useSteady('heard', all ?? [], numberOf)
  const box = useRef<HTMLDivElement>(null)
  const fitting = useFitting(box)
  return (
    <div class="fitting" ref={box}>
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
            <ConnectHelp />
          </Empty>
        ) : (
          <SteadyList steady={steady}>
            <ul class={all === null ? 'rows-awaited' : 'rows tight'}>
              {steady.rows.slice(0, fitting).map((node) => (
                <HeardRow node={node} key={node.nodeNum} />
              ))}
            </ul>
          </SteadyList>
        )}
      </Card>
    </div>
  )
}

/** The number of rows for which the box has room, if its height depends on the cards beside it. */
function useFitting(box: RefObject<HTMLDivElement | null>): number {
  const rows = useSignal(SHOWN)
  useLayoutEffect(() => {
    const element = box.current
    if (element === null) return
    const look = () => {
      const list = element.querySelector('ul')
      const [row] = list?.children ?? []
      if (list === null || row === undefined || getComputedStyle(element).contain !== 'size') {
        rows.value = SHOWN
        return
      }
      const end =
        element.getBoundingClientRect().bottom -
        Number.parseFloat(getComputedStyle(list.closest('.card') ?? list).paddingBottom)
      const room = end - list.getBoundingClientRect().top
      rows.value = Math.max(
        1,
        Math.min(MAX_SHOWN, Math.floor(room / (list.children[1] ?? row).getBoundingClientRect().height)),
      )
    }
    const observer = new ResizeObserver(look)
    observer.observe(element)
    return () => observer.disconnect()
  }, [nodes.value === null])
  return rows.value
}

const numberOf = ({ nodeNum }: Node) => nodeNum

function HeardRow({ node }: { node: Node }) {
  return (
    <li>
      <span class={isActive(node, now.value) ? 'badge live' : 'badge'} aria-hidden="true">
        {shortNameOf(node)}
      </span>
      <a class="grow clip" dir="auto" href={href(`/nodes/${node.nodeId}`)} title={nodeName(node)}>
        {nodeName(node)}
      </a>
      <span class="faint nowrap">
        {node.hopsAway !== null && <span class="phone-hidden">{t.nodes.hopsAway(node.hopsAway)} · </span>}
        <Age at={node.lastHeard} />
      </span>
    </li>
  )
}
