import { isOpenRemote, OPEN_REMOTE_STATES, type RemoteState } from '../../../../shared/mesh/remote-states.ts'
import { api, ask } from '../../../api.ts'
import { Age } from '../../../parts/age.tsx'
import { Failure, say } from '../../../parts/notice.tsx'
import { useAction, useLoad } from '../../../state/load.ts'
import { can } from '../../../state/session.ts'
import { c, SECTIONS } from '../../../strings/system/configuration.ts'
import { r } from '../../../strings/system/remote.ts'
import { keepEdits } from '../edits.ts'
import { leavesOf, rawOf, type Section, valueAt } from '../model.ts'
import { SectionFacts, SectionForm } from '../section.tsx'
import { sectionName } from '../words.ts'
import { airtimeText, asSection, destinationOf, readSection, type Remote, type RemoteSection } from './model.ts'
import { Progress } from './progress.tsx'

const POLL_MS = 15_000
const EVENTS = ['configuration'] as const

type Props = { remote: Remote; section: string; onBegun(): void }

/** One section of a node: read on demand, and then as one of a radio. */
export function RemotePane({ remote, section, onBegun }: Props) {
  const { nodeId } = remote
  const load = () => ask(api.remote[':id'][':section'].$get({ param: { id: nodeId, section } }))
  const loaded = useLoad(load, [nodeId, section], POLL_MS, EVENTS)
  const isUnread = loaded.error.value?.code === 'section_not_found'
  const found = isUnread ? null : loaded.data.value
  const action = found?.lastAction ?? remote.sections.find((each) => each.section === section)?.lastAction ?? null
  const shown = found === null ? null : asSection(found, nodeId)
  return (
    <section class="stack" aria-labelledby="section-name">
      <div>
        <h2 id="section-name" class="section-name">
          {sectionName(section)}
        </h2>
        <p class="faint">
          {SECTIONS[section]?.[1]}{' '}
          {found === null ? (
            isUnread && r.neverRead
          ) : (
            <>
              {c.readAt} <Age at={found.readAt} />.
            </>
          )}
        </p>
        <Progress action={action} section={shown} />
      </div>
      {!isUnread && <Failure error={loaded.error.value} retry={loaded.reload} />}
      <ReadAgain remote={remote} section={section} isFirst={found === null} onBegun={onBegun} />
      {found !== null && shown !== null && (
        <Editor remote={remote} found={found} shown={shown} loaded={loaded} onBegun={onBegun} />
      )}
    </section>
  )
}

function isBusy({ lastAction }: Remote): boolean {
  return lastAction !== null && isOpenRemote(lastAction.state)
}

function ReadAgain({ remote, section, isFirst, onBegun }: Props & { isFirst: boolean }) {
  const reading = useAction()
  if (!can('configuration', 'write')) return null
  const airtime = remote.sections.find((each) => each.section === section)?.readAirtime
  const read = () =>
    reading.run(async () => {
      await readSection(remote, section)
      onBegun()
    })
  return (
    <div>
      <Failure error={reading.error.value} />
      <button
        type="button"
        class={isFirst ? 'button primary' : 'button'}
        disabled={reading.busy.value || isBusy(remote) || remote.problem !== null}
        onClick={() => void read()}
      >
        {isFirst ? r.readNow : r.readAgain}
      </button>
      {airtime !== undefined && <p class="about">{airtimeText(airtime, remote)}</p>}
    </div>
  )
}

/** States in which the node has what it had before. */
const KEPT: ReadonlySet<RemoteState> = new Set([...OPEN_REMOTE_STATES, 'failed', 'refused'])

type EditorProps = {
  remote: Remote
  found: RemoteSection
  shown: Section
  loaded: { reload(): Promise<void> }
  onBegun(): void
}

function Editor({ remote, found, shown, loaded, onBegun }: EditorProps) {
  if (!can('configuration', 'write')) return <SectionFacts section={shown} />
  const { lastChange } = found
  const canPutBack =
    found.editable && lastChange !== null && !KEPT.has(lastChange.state) && Object.keys(lastChange.before).length > 0
  return (
    <>
      {!found.editable && <div class="notice notice-warn">{r.notEditable}</div>}
      {canPutBack && (
        <div>
          <button type="button" class="button" onClick={() => fillIn(shown, lastChange)}>
            {r.putBack}
          </button>
        </div>
      )}
      <SectionForm
        section={shown}
        destination={destinationOf(remote, found)}
        loaded={loaded}
        onSent={onBegun}
        isApplying={isBusy(remote)}
        isFixed={!found.editable || isBusy(remote) || remote.problem !== null}
      />
    </>
  )
}

/** Fills in the values from before a change. */
function fillIn(section: Section, { before, fields }: NonNullable<RemoteSection['lastChange']>): void {
  const old = { ...section, values: before }
  const values = new Map(
    leavesOf(section)
      .filter(({ path, field }) => fields.includes(path) && !field.secret && !field.readOnly)
      .map((leaf) => [leaf.path, rawOf(leaf.field, valueAt(old, leaf))] as const),
  )
  keepEdits(section.source, section.section, { values, secrets: new Map() })
  say(r.putBackHelp)
}
