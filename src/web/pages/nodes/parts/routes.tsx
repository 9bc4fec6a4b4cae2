import { api, askAs, send } from '../../../api.ts'
import { dateTime, humanize } from '../../../format.ts'
import { useAction, useLoad } from '../../../state/load.ts'
import { maySend } from '../../../state/mesh/links.ts'
import { type Node, useNames } from '../../../state/mesh/nodes.ts'
import { Age } from '../../../parts/age.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { href } from '../../../router.ts'
import { can } from '../../../state/session.ts'
import { t } from '../../../strings.ts'
import { ANSWERED, type Traceroute, type TraceroutePage } from '../../../parts/mesh/traceroute.ts'
import { Ways } from '../../../parts/mesh/way.tsx'

const POLL_MS = 5000
const SHOWN = '5'

/** The routes to a node that were found, and a button for a new traceroute. */
export function NodeRoutes({ node }: { node: Node }) {
  useNames()
  const { data, reload } = useLoad(
    () => askAs<TraceroutePage>(api.traceroutes.$get({ query: { node: node.nodeId, limit: SHOWN } })),
    [node.nodeId],
    POLL_MS,
    ['traceroute'],
  )
  const { busy, error, run } = useAction()
  const routes = data.value?.traceroutes
  const [latest, ...earlier] = routes ?? []
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
        maySend('traceroutes') &&
        !node.isLocal && (
          <button type="button" class="button small" disabled={busy.value} onClick={() => void trace()}>
            {t.routes.trace}
          </button>
        )
      }
    >
      <Failure error={error.value} />
      {routes?.length === 0 && <p class="faint">{t.routes.none}</p>}
      <ul class="rows tight">{latest !== undefined && <Route route={latest} />}</ul>
      {earlier.length > 0 && (
        <details>
          <summary>{t.routes.earlier(earlier.length)}</summary>
          <ul class="rows tight">
            {earlier.map((route) => (
              <Route route={route} key={route.id} />
            ))}
          </ul>
        </details>
      )}
      {(routes?.length ?? 0) > 0 && (
        <p>
          <a href={href(`/traceroutes?node=${node.nodeId}`)}>{t.routes.all}</a>
        </p>
      )}
    </Card>
  )
}

function Route({ route }: { route: Traceroute }) {
  return (
    <li>
      <div class="grow">
        <div class="faint">
          <Age at={route.timestamp} />
          {route.state !== 'delivered' && ` · ${stateName(route)}`}
        </div>
        <Ways trace={route} />
        {route.state === ANSWERED && (
          <a href={href(`/map?trace=${route.id}`)}>
            {t.routes.showWay}
            <span class="sr-only">, {dateTime(route.timestamp)}</span>
          </a>
        )}
      </div>
    </li>
  )
}

function stateName({ state, routingError }: Traceroute): string {
  return routingError === null ? t.routes.state[state] : `${t.routes.state[state]} (${humanize(routingError)})`
}
