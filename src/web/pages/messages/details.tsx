import type { InferResponseType } from 'hono/client'
import { useEffect, useRef } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { clockSeconds, dateTime, decimal, humanize } from '../../format.ts'
import { useLoad } from '../../state/load.ts'
import { BROADCAST, type Message, nameOf } from '../../state/mesh/nodes.ts'
import { Facts } from '../../parts/page.tsx'
import { Failure } from '../../parts/notice.tsx'
import { t } from '../../strings.ts'

type Reception = InferResponseType<(typeof api.messages)[':id']['receptions']['$get'], 200>['receptions'][number]

const POLL_MS = 10_000

/** The delivery state of a message in full sentences, and the paths by which it arrived. */
export function MessageDetails({ message }: { message: Message }) {
  const { timestamp, packetId, direction, radio } = message
  const box = useRef<HTMLDivElement>(null)
  const show = () => box.current?.scrollIntoView({ block: 'nearest' })
  return (
    <div class="message-details" ref={box}>
      {direction === 'out' && <p class="measure">{explainDelivery(message)}</p>}
      <Facts
        entries={[
          [t.messages.time, dateTime(timestamp)],
          [t.messages.packet, packetId === 0 ? null : String(packetId)],
          ...(radio === null ? [] : [[t.messages.radio, radio] as const]),
        ]}
      />
      <Receptions message={message} onDrawn={show} />
    </div>
  )
}

/** What the state means for this message, and what to do about it. */
function explainDelivery({ deliveryState, routingError, toNodeNum }: Message): string {
  const isDirect = toNodeNum !== BROADCAST
  const state = deliveryState ?? 'unknown'
  if (state === 'unknown' && routingError !== null) return t.messages.unsureLong
  if (state !== 'failed') return (isDirect ? t.messages.directStates : t.messages.channelStates)[state]
  const reasons: Readonly<Record<string, string>> = t.messages.routingErrors
  if (routingError === null) return t.messages.failedUnknown
  return reasons[routingError] ?? t.messages.failedOther(humanize(routingError))
}

function Receptions({ message: { id, direction }, onDrawn }: { message: Message; onDrawn(): void }) {
  const { data, error, reload } = useLoad(
    () => ask(api.messages[':id'].receptions.$get({ param: { id: String(id) } })),
    [id],
    POLL_MS,
    ['message'],
  )
  const found = data.value?.receptions
  useEffect(onDrawn, [found === undefined])
  if (found === undefined) return <Failure error={error.value} retry={reload} />
  if (found.length === 0) {
    return <p class="faint">{direction === 'out' ? t.messages.noReceptionsOut : t.messages.noReceptions}</p>
  }
  return (
    <table class="changes">
      <caption>{t.messages.receptions}</caption>
      <thead>
        <tr>
          <th scope="col">{t.messages.heardBy}</th>
          <th scope="col">{t.messages.time}</th>
          <th scope="col">{t.nodes.columns.hops}</th>
          <th scope="col">{t.nodes.snr}</th>
        </tr>
      </thead>
      <tbody>
        {found.map((one) => (
          <ReceptionRow key={`${one.source}-${one.gateway}-${one.timestamp}`} reception={one} />
        ))}
      </tbody>
    </table>
  )
}

function ReceptionRow({
  reception: { source, gateway, gatewayId, timestamp, hopsAway, rxSnr, differs },
}: {
  reception: Reception
}) {
  return (
    <tr>
      <th scope="row">
        {gateway === null || gatewayId === null ? source : nameOf(gateway, gatewayId)}
        {differs.length > 0 && (
          <span class="faint">
            {' '}
            {t.messages.differs} {differs.map((part) => t.messages.parts[part]).join(', ')}
          </span>
        )}
      </th>
      <td>{clockSeconds(timestamp)}</td>
      <td>{hopsAway ?? t.common.none}</td>
      <td>{rxSnr === null ? t.common.none : `${decimal(rxSnr, 2)} dB`}</td>
    </tr>
  )
}
