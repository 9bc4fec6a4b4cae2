import type { InferResponseType } from 'hono/client'
import type { ComponentChildren } from 'preact'
import { SECOND_MS } from '../../../shared/time.ts'
import { api, ask, send } from '../../api.ts'
import { dateMinutes, decimal, duration } from '../../format.ts'
import { Age } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { linkNames, markOf } from '../../parts/mesh/linked-names.tsx'
import { decibels } from '../../parts/mesh/snr.ts'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { can } from '../../state/session.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { findingTexts } from '../../strings/mesh/findings.ts'
import { t } from '../../strings.ts'

const POLL_MS = 60_000
/** Names in a sentence; the others are counted. */
const NAMED = 5

type Findings = InferResponseType<(typeof api.findings)['$get'], 200>
type Finding = Findings['findings'][number]

/** What is wrong in the mesh, in sentences. */
export function FindingsPage() {
  const { data, error, reload } = useLoad(() => ask(api.findings.$get()), [], POLL_MS)
  const found = data.value
  const told = found?.findings.filter(({ isMuted }) => !isMuted) ?? []
  const muted = found?.findings.filter(({ isMuted }) => isMuted) ?? []
  return (
    <Page title={t.nav.findings}>
      <Failure error={error.value} retry={reload} />
      {found !== null && (
        <>
          {told.length === 0 && (
            <Empty icon="check" title={found.at === null ? findingTexts.notYet : findingTexts.none}>
              <p>{found.at === null ? findingTexts.notYetHelp : findingTexts.noneHelp}</p>
              <ConnectHelp />
            </Empty>
          )}
          {told.length > 0 && (
            <Card title={findingTexts.count(told.length)} help={findingTexts.help}>
              <List findings={told} onChanged={reload} />
            </Card>
          )}
          {muted.length > 0 && (
            <Card title={findingTexts.mutedOnes(muted.length)}>
              <List findings={muted} onChanged={reload} />
            </Card>
          )}
          {found.at !== null && (
            <p class="faint">
              {findingTexts.looked}: <Age at={found.at} />
            </p>
          )}
        </>
      )}
    </Page>
  )
}

function List({ findings, onChanged }: { findings: readonly Finding[]; onChanged(): Promise<void> }) {
  return (
    <ul class="rows">
      {findings.map((finding) => (
        <FindingRow key={`${finding.rule} ${finding.subject}`} finding={finding} onChanged={onChanged} />
      ))}
    </ul>
  )
}

function FindingRow({ finding, onChanged }: { finding: Finding; onChanged(): Promise<void> }) {
  const { rule, subject, isMuted, isLikely, mutedBy, since } = finding
  const changing = useAction()
  const change = () =>
    changing.run(async () => {
      await send(api.findings[':rule'][':subject'].$put({ param: { rule, subject }, json: { muted: !isMuted } }))
      await onChanged()
    })
  return (
    <li>
      <div class="grow break">
        {sentence(finding)}
        <div class="faint">
          {isLikely ? findingTexts.likely : findingTexts.possible}
          {' · '}
          {findingTexts.since} <Age at={since} />
          {mutedBy !== null && ` · ${findingTexts.mutedBy(mutedBy)}`}
        </div>
        <Failure error={changing.error.value} />
      </div>
      {can('info', 'write') && (
        <button class="button small" disabled={changing.busy.value} onClick={change}>
          {isMuted ? findingTexts.unmute : findingTexts.mute}
        </button>
      )}
    </li>
  )
}

/** A finding as a sentence with its evidence; names lead to the nodes. */
function sentence({ rule, nodes, evidence }: Finding): ComponentChildren {
  const marks = nodes.map((_, index) => markOf(index))
  const [a = '', b = ''] = marks
  const others = marks.slice(1, NAMED + 1)
  const left = nodes.length - 1 - others.length
  const list = (shown: readonly string[], rest: number) =>
    [...shown, ...(rest > 0 ? [findingTexts.more(rest)] : [])].join(', ')
  const names = list(others, left)
  const number = (key: string) => Number(evidence[key] ?? 0)
  const texts = findingTexts.rules
  const percent = (value: number) => `${decimal(value, 0)} %`
  const text = (): string => {
    switch (rule) {
      case 'one_way':
        return texts.one_way(a, b, decibels(number('snr')))
      case 'depends':
        return texts.depends(a, findingTexts.nodes(number('lost')), list(others, number('lost') - others.length))
      case 'routers':
        return texts.routers(a, b, decibels(number('snr')))
      case 'chatty':
        return texts.chatty(a, percent(number('share') * 100), findingTexts.packets(number('packets')))
      case 'battery':
        return texts.battery(a, percent(number('level')), percent(number('perDay')), findingTexts.days(number('days')))
      case 'restarts':
        return texts.restarts(a, findingTexts.times(number('restarts')))
      case 'clock':
        return texts.clock(a, duration(Math.abs(number('ahead')) / SECOND_MS))
      case 'key':
        return evidence['shared'] === true ? texts.sharedKey(a, names) : texts.weakKey(a)
      case 'hops':
        return texts.hops(a, findingTexts.hops(number('limit')), findingTexts.hops(number('needed')))
      case 'busy':
        return texts.busy(a, percent(number('use')))
      case 'only_gateway':
        return texts.only_gateway(a, list(others, number('lost') - others.length))
      case 'region_silent':
        return texts.region_silent(list(marks.slice(0, NAMED), nodes.length - NAMED), dateMinutes(number('at')))
      case 'firmware':
        return texts.firmware(a, String(evidence['version'] ?? ''))
    }
  }
  return linkNames(text(), nodes)
}
