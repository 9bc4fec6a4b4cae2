import { isOpenRemote, type RemoteState } from '../../../../shared/mesh/remote-states.ts'
import { Age } from '../../../parts/age.tsx'
import { c } from '../../../strings/system/configuration.ts'
import { r } from '../../../strings/system/remote.ts'
import { leavesOf, type Section } from '../model.ts'
import { namesOf, sectionName } from '../words.ts'
import type { RemoteAction } from './model.ts'

const GOOD: ReadonlySet<RemoteState> = new Set(['done', 'applied'])
const BAD: ReadonlySet<RemoteState> = new Set(['refused', 'lost', 'failed', 'timed_out'])

function toneOf(state: RemoteState): string {
  if (isOpenRemote(state)) return 'notice'
  if (GOOD.has(state)) return 'notice notice-good'
  return BAD.has(state) ? 'notice notice-bad' : 'notice notice-warn'
}

/** How an action stands, in sentences. `section`: the one that it is about, for the names of its fields. */
export function Progress({ action, section }: { action: RemoteAction | null; section: Section | null }) {
  return (
    <div role="status">
      {action !== null && (
        <div class={toneOf(action.state)}>
          {isOpenRemote(action.state) && <progress aria-label={r.kinds[action.kind]} />}
          <Told action={action} section={section} />
        </div>
      )}
    </div>
  )
}

function Told({ action, section }: { action: RemoteAction; section: Section | null }) {
  const { kind, state, reason, detail, fields, differing, by, at, settledAt } = action
  const names = (paths: readonly string[]) => (section === null ? '' : namesOf(section, leavesOf(section), paths))
  const what = action.section === null ? r.kinds[kind] : `${r.kinds[kind]}: ${sectionName(action.section)}`
  return (
    <div>
      <strong>{what}</strong>
      <div>
        {r.states[state]}
        {reason !== null && `. ${r.reasons[reason]}`}
      </div>
      {detail !== null && <div class="about mono break">{detail}</div>}
      {differing.length > 0 && section !== null && <div>{c.differing(names(differing))}</div>}
      <div class="about">
        {fields.length > 0 && section !== null && `${c.fields(names(fields))} · `}
        {by !== null && `${c.by(by)} · `}
        <Age at={settledAt ?? at} />
      </div>
    </div>
  )
}
