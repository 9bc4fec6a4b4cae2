import { api, ask } from '../../api.ts'
import { Failure } from '../../parts/notice.tsx'
import { decibels, signalOf } from '../../parts/mesh/snr.ts'
import type { Traceroute } from '../../parts/mesh/traceroute.ts'
import { useLoad } from '../../state/load.ts'
import { nameOf } from '../../state/mesh/nodes.ts'
import { directTexts } from '../../strings/mesh/direct-range.ts'
import './direct-answers.css'

const POLL_MS = 10_000

/** The nodes that heard the radio directly, and how well each side hears the other. */
export function DirectAnswers({ trace }: { trace: Traceroute }) {
  const { data, error, reload } = useLoad(
    () => ask(api.traceroutes[':id'].answers.$get({ param: { id: String(trace.id) } })),
    [trace.id],
    POLL_MS,
    ['traceroute'],
  )
  const answers = data.value?.answers
  return (
    <>
      <Failure error={error.value} retry={reload} />
      {answers?.length === 0 && <p class="faint">{directTexts.none}</p>}
      {answers !== undefined && answers.length > 0 && (
        <table class="direct-answers">
          <caption class="sr-only">{directTexts.list}</caption>
          <thead>
            <tr>
              <th scope="col">{directTexts.node}</th>
              <th scope="col">{directTexts.towards}</th>
              <th scope="col">{directTexts.back}</th>
            </tr>
          </thead>
          <tbody>
            {answers.map(({ nodeNum, nodeId, snrTowards, snrBack }) => (
              <tr key={nodeNum}>
                <td>
                  <bdi>{nameOf(nodeNum, nodeId)}</bdi>
                </td>
                <td>
                  <Signal snr={snrTowards} />
                </td>
                <td>
                  <Signal snr={snrBack} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  )
}

function Signal({ snr }: { snr: number | null }) {
  return <span class={`hop snr-${signalOf(snr)}`}>{decibels(snr)}</span>
}
