import { type Signal, useComputed } from '@preact/signals'
import { decimal, zonedTime } from '../../format.ts'
import { BROADCAST, nameOfId } from '../../state/mesh/nodes.ts'
import { Labelled } from '../../parts/form/labelled.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Card, Facts } from '../../parts/page.tsx'
import { a } from '../../strings/automation.ts'
import type { Channels } from './channels.ts'
import { NodeSelect } from './fields.tsx'
import type { DryRun, Sample } from './rule.ts'
import type { Trial } from './trial.ts'
import { airtime, modemName } from './words.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { MAX_SAMPLE } from '../../../shared/limits.ts'

type Props = {
  /** It answers messages; otherwise it runs on schedule. */
  answers: boolean
  timeZone: string
  trial: Trial
  channels: Channels
  sample: Signal<Sample>
}

/** The dry run of a rule, beside its form. */
export function TryCard({ answers, timeZone, trial, channels, sample }: Props) {
  const result = trial.result.value
  const error = trial.error.value
  const isWrong = error !== null && error.issues.length > 0
  return (
    <Card title={a.try} help={a.tryHelp}>
      {answers && <SampleFields sample={sample} channels={channels} />}
      {!trial.isWhole || isWrong ? <p class="faint">{a.tryIncomplete}</p> : <Failure error={error} />}
      {result !== null && error === null && (
        <div class="stack">
          {trial.isWhole && <Sending result={result} channels={channels} />}
          {!answers && <NextRuns runs={result.nextRuns} timeZone={timeZone} />}
          {trial.isWhole && <Estimate result={result} />}
        </div>
      )}
    </Card>
  )
}

function Sending({ result, channels }: { result: DryRun; channels: Channels }) {
  const { sample, messages, blockedBy } = result
  return (
    <section class="stack tight" aria-live="polite">
      <h3>{sample === null ? a.tryNow : a.tryAnswer}</h3>
      {messages.length === 0 && <p class="faint">{a.tryNothing}</p>}
      {messages.map((message) => (
        <Bubble message={message} channels={channels} key={`${message.toNodeId} ${message.channel}`} />
      ))}
      {sample !== null ? (
        <Verdict sample={sample} />
      ) : (
        blockedBy !== null && <p class="warn">{a.tryBlocked(a.reasons[blockedBy])}</p>
      )}
    </section>
  )
}

function Bubble({ message, channels }: { message: DryRun['messages'][number]; channels: Channels }) {
  const { kind, text, bytes, toNodeNum, toNodeId, channel, airtimeMs } = message
  if (kind === 'traceroute') {
    return (
      <div class="would">
        <div>{a.routeTo(nameOfId(toNodeId))}</div>
        <div class="about">{a.onAir(airtime(airtimeMs))}</div>
      </div>
    )
  }
  const where = toNodeNum === BROADCAST ? a.toEverybody(channels.name(channel)) : a.toNode(nameOfUnknown(toNodeId))
  const reaction = toNodeNum === BROADCAST ? a.reactionOn(channels.name(channel)) : where
  return (
    <div class="would">
      <div class={kind === 'tapback' ? 'would-emoji' : 'pre'}>{text}</div>
      <div class="about">
        {kind === 'tapback' ? reaction : where} · {a.size(bytes, airtime(airtimeMs))}
      </div>
    </div>
  )
}

/** The service uses node 1 as a placeholder for an unknown sender. */
function nameOfUnknown(nodeId: string): string {
  return nodeId === '!00000001' ? a.theSender : nameOfId(nodeId)
}

function Verdict({ sample }: { sample: NonNullable<DryRun['sample']> }) {
  if (!sample.isHeard) return <p class="warn">{a.notHeard}</p>
  if (sample.skippedBy !== null) return <p class="warn">{a.notAnswered(a.reasons[sample.skippedBy])}</p>
  return <p class="good">{a.answeredYes}</p>
}

function SampleFields({ sample, channels }: { sample: Signal<Sample>; channels: Channels }) {
  const where = useComputed(() => (sample.value.direct ? 'direct' : String(sample.value.channel ?? 0)))
  const from = useComputed(() => (typeof sample.value.from === 'string' ? sample.value.from : ''))
  const set = (changes: Partial<Sample>) => (sample.value = { ...sample.value, ...changes })
  return (
    <fieldset class="sample">
      <legend class="sr-only">{a.sample}</legend>
      <Labelled label={a.sampleText}>
        {(aria) => (
          <input
            {...aria}
            type="text"
            maxLength={MAX_SAMPLE}
            value={sample.value.text}
            autocomplete="off"
            onInput={(event) => set({ text: event.currentTarget.value })}
          />
        )}
      </Labelled>
      <div class="two">
        <Labelled label={a.sampleWhere}>
          {(aria) => (
            <select
              {...aria}
              value={where.value}
              onChange={(event) => {
                const { value } = event.currentTarget
                set(value === 'direct' ? { direct: true, channel: 0 } : { direct: false, channel: Number(value) })
              }}
            >
              {[...new Set([0, ...channels.used])].map((index) => (
                <option key={index} value={String(index)}>
                  {a.sampleOn(channels.name(index))}
                </option>
              ))}
              <option value="direct">{a.sampleDirect}</option>
            </select>
          )}
        </Labelled>
        <NodeSelect
          label={a.sampleFrom}
          value={from.value}
          none={a.sampleUnknown}
          onChange={(nodeId) => {
            const { from: _from, ...rest } = sample.value
            sample.value = nodeId === '' ? rest : { ...rest, from: nodeId }
          }}
        />
      </div>
    </fieldset>
  )
}

function NextRuns({ runs, timeZone }: { runs: DryRun['nextRuns']; timeZone: string }) {
  const format = zonedTime(timeZone)
  return (
    <section class="stack tight">
      <h3>{a.nextRuns}</h3>
      {runs.length === 0 && <p class="faint">{a.nextNone}</p>}
      <ol class="runs">
        {runs.map(({ at, skippedBy }) => (
          <li key={at} class={skippedBy === null ? '' : 'faint'}>
            <time dateTime={new Date(at).toISOString()}>{format(at)}</time>
            {skippedBy !== null && <span class="warn">{a.skipQuiet}</span>}
          </li>
        ))}
      </ol>
      <p class="about">{a.nextRunsIn(timeZone.replaceAll('_', ' '))}</p>
    </section>
  )
}

function Estimate({ result: { estimate, modem } }: { result: DryRun }) {
  const { packetsPerDay, airtimeMsPerDay, isUpperBound } = estimate
  const bound = isUpperBound ? a.atMost : a.about
  const percent = (airtimeMsPerDay / DAY_MS) * 100
  return (
    <section class="stack tight">
      <h3>{a.estimate}</h3>
      <Facts
        entries={[
          [a.estimatePackets, bound(decimal(packetsPerDay))],
          [
            a.estimateAir,
            <>
              {bound(airtime(airtimeMsPerDay))}
              <span class="faint"> ({a.share(percent < 0.01 ? `< ${decimal(0.01, 2)}` : decimal(percent, 2))})</span>
            </>,
          ],
        ]}
      />
      <p class="about">{(modem.isAssumed ? a.modemAssumed : a.modem)(modemName(modem.preset))}</p>
    </section>
  )
}

/** Why a rule may stay silent. */
export function Guards() {
  return (
    <details class="guards">
      <summary>{a.guards}</summary>
      <ul>
        {a.guardTexts.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </details>
  )
}
