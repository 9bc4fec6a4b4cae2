import type { InferResponseType } from 'hono/client'
import { api, ask, send } from '../api.ts'
import { humanize } from '../format.ts'
import { useAction, useLoad } from '../load.ts'
import { type Node, nodeByNum, nodeName, useNodes } from '../mesh.ts'
import { Age } from '../parts/age.tsx'
import { Failure, say } from '../parts/notice.tsx'
import { Card } from '../parts/page.tsx'
import { can } from '../session.ts'
import { t } from '../strings.ts'

type Traceroute = InferResponseType<typeof api.traceroutes.$get>['traceroutes'][number]

const POLL_MS = 5000
const SHOWN = '5'

/** The ways to a node that were found, and a button to look for one. */
export function NodeRoutes({ node }: { node: Node }) {
  useNodes()
  const { data, reload } = useLoad(
    () => ask(api.traceroutes.$get({ query: { node: node.nodeId, limit: SHOWN } })),
    [node.nodeId],
    POLL_MS,
  )
  const { busy, error, run } = useAction()
  const routes = data.value?.traceroutes
  const trace = () =>
    run(async () => {
      await send(api.traceroutes.$post({ json: { to: node.nodeId } }))
      say(t.routes.asked)
      await reload()
    })
  return (
    <Card
      title={t.routes.title}
      actions={
        can('info', 'write') &&
        !node.isLocal && (
          <button type="button" class="button small" disabled={busy.value} onClick={() => void trace()}>
            {t.routes.trace}
          </button>
        )
      }
    >
      <Failure error={error.value} />
      {routes?.length === 0 && <p class="faint">{t.routes.none}</p>}
      <ul class="rows tight">
        {routes?.map((route) => (
          <li key={route.id}>
            <div class="grow">
              <div class="faint">
                <Age at={route.timestamp} />
                {route.state !== 'delivered' && ` · ${stateName(route)}`}
              </div>
              {route.route !== null && (
                <Way
                  label={t.routes.towards}
                  nodes={[route.fromNodeNum, ...route.route, route.toNodeNum]}
                  snr={route.snrTowards ?? []}
                />
              )}
              {route.routeBack !== null && (route.snrBack?.length ?? 0) > 0 && (
                <Way
                  label={t.routes.back}
                  nodes={[route.toNodeNum, ...route.routeBack, route.fromNodeNum]}
                  snr={route.snrBack ?? []}
                />
              )}
            </div>
          </li>
        ))}
      </ul>
    </Card>
  )
}

function stateName({ state, routingError }: Traceroute): string {
  return routingError === null ? t.routes.state[state] : `${t.routes.state[state]} (${humanize(routingError)})`
}

/** Node by node, with the signal of each hop between them. */
function Way(props: { label: string; nodes: readonly (number | null)[]; snr: readonly (number | null)[] }) {
  return (
    <div class="way">
      <span class="faint">{props.label} </span>
      {props.nodes.map((nodeNum, index) => (
        <span key={index}>
          {index > 0 && <span class="faint mono"> →{snrText(props.snr[index - 1])} </span>}
          {shortName(nodeNum)}
        </span>
      ))}
    </div>
  )
}

function snrText(snr: number | null | undefined): string {
  return snr === null || snr === undefined ? '' : ` ${snr} dB →`
}

function shortName(nodeNum: number | null): string {
  if (nodeNum === null) return '?'
  const node = nodeByNum(nodeNum)
  return node === undefined ? `!${nodeNum.toString(16).padStart(8, '0')}` : (node.shortName ?? nodeName(node))
}
