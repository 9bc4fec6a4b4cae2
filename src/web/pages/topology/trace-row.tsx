import { useSignal } from '@preact/signals'
import { dateTime, humanize, plain, stamp } from '../../format.ts'
import { nameOf, nodeByNum, shortNameOf } from '../../state/mesh/nodes.ts'
import { Age } from '../../parts/age.tsx'
import { Icon } from '../../parts/icon.tsx'
import { href, setQuery } from '../../router.ts'
import { can, has, isAnonymous } from '../../state/session.ts'
import { directTexts } from '../../strings/mesh/direct-range.ts'
import { t } from '../../strings.ts'
import { decibels, signalOf } from '../../parts/mesh/snr.ts'
import { ANSWERED, type Traceroute, type Way, waysOf } from '../../parts/mesh/traceroute.ts'
import { Ways } from '../../parts/mesh/way.tsx'
import { DirectAnswers } from './direct-answers.tsx'
import { changesOf } from './route-change.ts'

/** One traceroute in two or three lines, and everything about it once it is opened. */
export function TraceRow({ trace }: { trace: Traceroute }) {
  const isOpen = useSignal(false)
  const isAnswered = trace.state === ANSWERED
  const [towards] = waysOf(trace)
  const changes = changesOf(trace, fullName)
  return (
    <li class="trace">
      <div class="trace-head">
        <button
          type="button"
          class="expander"
          aria-expanded={isOpen.value}
          onClick={() => (isOpen.value = !isOpen.value)}
        >
          <Icon name="next" />
          <strong>
            {nameOf(trace.fromNodeNum, trace.fromNodeId)}{' '}
            <span class="arrow" aria-hidden="true">
              →
            </span>{' '}
            <span class="sr-only">{t.routes.to}</span>
            {isToAll(trace) ? directTexts.everybody : nameOf(trace.toNodeNum, trace.toNodeId)}
          </strong>
        </button>
        <span class="trace-marks">
          {!isAnonymous.value && <OriginMark trace={trace} />}
          <span class={`badge trace-state ${trace.state}`}>{t.routes.state[trace.state]}</span>
          <span class="faint nowrap">
            <Age at={trace.timestamp} short />
          </span>
        </span>
      </div>
      {!isOpen.value && towards !== undefined && <Brief way={towards} />}
      {!isOpen.value && !isAnswered && <p class="trace-line faint">{whyNot(trace)}</p>}
      {changes.length > 0 && trace.previous && (
        <p class="trace-line trace-change">{t.routes.changed(stamp(trace.previous.answeredAt), changes.join('; '))}</p>
      )}
      {isOpen.value && <Details trace={trace} />}
    </li>
  )
}

function OriginMark({ trace: { requestedBy } }: { trace: Traceroute }) {
  return (
    <span class={requestedBy === null ? 'badge origin' : 'badge origin own'}>
      {requestedBy === null ? t.routes.overheard : t.routes.own}
    </span>
  )
}

/** The way towards the node, in short names. */
function Brief({ way: { nodes, snr } }: { way: Way }) {
  return (
    <p class="trace-line">
      {nodes.map((nodeNum, index) => (
        <span class="nowrap" key={index}>
          {index > 0 && (
            <>
              {' '}
              <span class={`hop snr-${signalOf(snr[index - 1] ?? null)}`}>
                {decibels(snr[index - 1] ?? null)}{' '}
                <span class="arrow" aria-hidden="true">
                  →
                </span>
              </span>{' '}
            </>
          )}
          <bdi>{shortName(nodeNum)}</bdi>
        </span>
      ))}
    </p>
  )
}

function Details({ trace }: { trace: Traceroute }) {
  const { state, requestedBy, notice, id, fromNodeId, toNodeId } = trace
  const isAnswered = state === ANSWERED
  return (
    <div class="trace-detail">
      {isToAll(trace) && !isAnonymous.value && has('radio') ? <DirectAnswers trace={trace} /> : <Ways trace={trace} />}
      {!isAnswered && <p class="faint">{whyNot(trace)}</p>}
      {notice !== undefined && <p class={isAnswered ? 'faint' : 'bad'}>{t.common.radioSays(notice)}</p>}
      <p class="faint">
        {dateTime(trace.timestamp)}
        {!isAnonymous.value && requestedBy !== null && ` · ${t.routes.askedBy(plain(requestedBy))}`}
      </p>
      <div class="row">
        {!isAnonymous.value && !isToAll(trace) && (
          <button type="button" class="button small" onClick={() => setQuery({ node: fromNodeId, with: toNodeId })}>
            {t.routes.history}
          </button>
        )}
        {isAnswered && !isToAll(trace) && can('nodes', 'read') && (
          <a class="button small" href={href(`/map?trace=${id}`)}>
            {t.routes.showOnMap}
          </a>
        )}
      </div>
    </div>
  )
}

/** The number of all nodes: the request went to everybody in direct range. */
const ALL = 0xffffffff

const isToAll = ({ toNodeNum }: Traceroute) => toNodeNum === ALL

/** Why there is no route. */
function whyNot({ state, routingError }: Traceroute): string {
  return routingError === null ? t.routes.stateHelp[state] : `${t.routes.stateHelp[state]} (${humanize(routingError)})`
}

function fullName(nodeNum: number | null): string {
  return nodeNum === null ? t.routes.silent : nameOf(nodeNum, idOf(nodeNum))
}

function shortName(nodeNum: number | null): string {
  if (nodeNum === null) return '?'
  const node = nodeByNum(nodeNum)
  return node === undefined ? idOf(nodeNum).slice(-4) : shortNameOf(node)
}

const idOf = (nodeNum: number) => `!${nodeNum.toString(16).padStart(8, '0')}`
