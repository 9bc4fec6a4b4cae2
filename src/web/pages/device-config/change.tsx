import { isUnderWay } from '../../../shared/mesh/change-states.ts'
import { Age, now } from '../../parts/age.tsx'
import { t } from '../../strings.ts'
import { c } from '../../strings/system/configuration.ts'
import { type Change, leavesOf, type Section } from './model.ts'
import { namesOf } from './words.ts'

const TONES = {
  waiting: 'notice',
  applying: 'notice',
  applied: 'notice notice-good',
  differs: 'notice notice-warn',
  failed: 'notice notice-bad',
  unknown: 'notice notice-warn',
} as const satisfies Record<Change['state'], string>

const TAGS = {
  waiting: 'tag accent',
  applying: 'tag accent',
  applied: 'tag good',
  differs: 'tag bad',
  failed: 'tag bad',
  unknown: 'tag',
} as const satisfies Record<Change['state'], string>

/** How long a successful change is shown as new. */
const NEWS_MS = 600_000

/** The outcome of the last change of a section. */
export function ChangeNotice({ section }: { section: Section }) {
  const change = section.lastChange
  const isOld = change?.state === 'applied' && now.value - (change.settledAt ?? change.at) > NEWS_MS
  return (
    <div role="status">
      {change !== null && (
        <div class={isOld ? 'faint' : TONES[change.state]}>
          {isUnderWay(change.state) && <progress aria-label={c.badges[change.state]} />}
          <ChangeText change={change} section={section} />
        </div>
      )}
    </div>
  )
}

function ChangeText({ change, section }: { change: Change; section: Section }) {
  const { state, by, at, settledAt, reason, notice, fields, differing } = change
  const leaves = leavesOf(section)
  return (
    <div>
      <strong>{c.states[state]}</strong>
      {reason !== null && <div>{reason}</div>}
      {notice !== undefined && <div>{t.common.radioSays(notice)}</div>}
      {differing.length > 0 && <div>{c.differing(namesOf(section, leaves, differing))}</div>}
      <div class="about">
        {c.fields(namesOf(section, leaves, fields))} · {by !== null && `${c.by(by)} · `}
        <Age at={settledAt ?? at} />
      </div>
    </div>
  )
}

export function ChangeTag({ change }: { change: Change }) {
  return <span class={TAGS[change.state]}>{c.badges[change.state]}</span>
}
