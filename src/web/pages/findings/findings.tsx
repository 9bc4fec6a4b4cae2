import { api, ask, send } from '../../api.ts'
import { Age } from '../../parts/age.tsx'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { href } from '../../router.ts'
import { can } from '../../state/session.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { findingTexts } from '../../strings/mesh/findings.ts'
import { t } from '../../strings.ts'
import { mayWatch } from '../alerts/kinds/kinds.ts'
import { mapOf } from './map-of.ts'
import { type Finding, sentence } from './sentence.tsx'
import { TellMe } from './tell-me.tsx'

const POLL_MS = 60_000
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
      {can('nodes', 'read') && (
        <a class="button small" href={href(mapOf(finding))}>
          {findingTexts.showOnMap}
        </a>
      )}
      {mayWatch('finding') && <TellMe finding={finding} />}
      {can('info', 'write') && (
        <button class="button small" disabled={changing.busy.value} onClick={change}>
          {isMuted ? findingTexts.unmute : findingTexts.mute}
        </button>
      )}
    </li>
  )
}
