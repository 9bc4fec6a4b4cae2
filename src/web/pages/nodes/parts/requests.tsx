import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { REQUEST_KINDS, type RequestKind } from '../../../../shared/mesh/request-kinds.ts'
import { api, ask, send } from '../../../api.ts'
import { humanize } from '../../../format.ts'
import { Age } from '../../../parts/age.tsx'
import { Select } from '../../../parts/form/field.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { Card } from '../../../parts/page.tsx'
import { useAction, useLoad } from '../../../state/load.ts'
import type { Node } from '../../../state/mesh/nodes.ts'
import { requestTexts } from '../../../strings/mesh/requests.ts'
import { t } from '../../../strings.ts'

const POLL_MS = 10_000
const SHOWN = 5

type Request = InferResponseType<(typeof api.nodes)[':id']['requests']['$get'], 200>['requests'][number]

/** Asks the node for its position, measurements or names, and shows what became of it. */
export function NodeRequests({ node }: { node: Node }) {
  const param = { id: node.nodeId }
  const kind = useSignal<RequestKind>('position')
  const { data, error, reload } = useLoad(
    () => ask(api.nodes[':id'].requests.$get({ param })),
    [node.nodeId],
    POLL_MS,
    ['node'],
    null,
    node.nodeId,
  )
  const asking = useAction()
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    void asking.run(async () => {
      await send(api.nodes[':id'].requests.$post({ param, json: { kind: kind.value } }))
      say(requestTexts.asked)
      await reload()
    })
  }
  const requests = data.value?.requests
  return (
    <Card title={requestTexts.title} help={requestTexts.help}>
      <Failure error={asking.error.value ?? error.value} />
      <form class="ask-route" onSubmit={submit}>
        <Select
          label={requestTexts.what}
          value={kind.value}
          options={REQUEST_KINDS.map((name) => [name, requestTexts.kinds[name]] as const)}
          onChange={(name) => (kind.value = name)}
        />
        <button class="button" disabled={asking.busy.value}>
          {asking.busy.value ? t.common.loading : requestTexts.ask}
        </button>
      </form>
      {requests?.length === 0 && <p class="faint">{requestTexts.none}</p>}
      <ul class="rows tight" aria-live="polite">
        {requests?.slice(0, SHOWN).map((request) => (
          <li key={request.id}>
            <div class="grow">
              {requestTexts.kinds[request.kind]}
              <div class={request.state === 'failed' ? 'bad' : 'faint'}>{outcome(request)}</div>
              {request.notice !== null && <div class="faint">{t.common.radioSays(request.notice)}</div>}
            </div>
            <span class="faint nowrap">
              <Age at={request.answeredAt ?? request.timestamp} short />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}

function outcome({ state, routingError, answeredAt }: Request): string {
  if (answeredAt !== null) return requestTexts.answered
  if (routingError === null) return requestTexts.states[state]
  const reason = routingError === 'NO_RESPONSE' ? requestTexts.noAnswerToGive : humanize(routingError)
  return requestTexts.because(requestTexts.states[state], reason)
}
