import type { ComponentChildren } from 'preact'
import { SECOND_MS } from '../../../../shared/time.ts'
import { api, ask } from '../../../api.ts'
import { age } from '../../../format.ts'
import { now } from '../../../parts/age.tsx'
import { CONNECT_PATH, connectTexts } from '../../../parts/connect-help.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { href } from '../../../router.ts'
import { useLoad } from '../../../state/load.ts'
import { useOfflineCache } from '../../../state/offline-cache.ts'
import { can, has, isAnonymous } from '../../../state/session.ts'
import { t } from '../../../strings.ts'
import { needTexts } from '../../../strings/mesh/needs.ts'
import type { Looked } from './look-around.ts'

const POLL_MS = 60 * SECOND_MS

/** One line, if nothing needs anybody: what was looked at. It is calm only if something is heard and watched. */
export function Calm({ looked }: { looked: Looked }) {
  return isAnonymous.value ? <Line isWell title={seen(looked)} details={[]} /> : <Watched looked={looked} />
}

function Watched({ looked }: { looked: Looked }) {
  const rules = useLoad(() => ask(api.alerts.rules.$get({ query: {} })), [], POLL_MS, ['alert'])
  useOfflineCache('alert rules', rules)
  const watching = rules.data.value?.watching
  if (looked.isDeaf) return <Deaf />
  if (watching === undefined) {
    return rules.error.value === null ? (
      <p class="calm faint">{needTexts.looking}</p>
    ) : (
      <Failure error={rules.error.value} retry={() => void rules.reload()} />
    )
  }
  const { rules: count, nodes, evaluatedAt, isLate } = watching
  if (count === 0) {
    return (
      <Line isWell={false} title={needTexts.unwatched} details={[needTexts.unwatchedHelp, seen(looked)]}>
        <a class="button small" href={href('/alerts')}>
          {needTexts.writeRule}
        </a>
      </Line>
    )
  }
  if (isLate || evaluatedAt === null) {
    const title = isLate ? needTexts.late : needTexts.notChecked
    return <Line isWell={false} title={title} details={[needTexts.watches(count, nodes), seen(looked)]} />
  }
  const check = needTexts.lastCheck(t.common.ago(age(evaluatedAt, now.value)))
  return (
    <Line isWell title={needTexts.nothing} details={[`${needTexts.watches(count, nodes)}; ${check}`, seen(looked)]} />
  )
}

/** That nothing can be heard, and how to change that. */
export function Deaf() {
  return (
    <Line isWell={false} title={needTexts.deaf} details={[]}>
      {has('radio') && can('configuration', 'write') && (
        <a class="button small" href={href(CONNECT_PATH)}>
          {connectTexts.connect}
        </a>
      )}
    </Line>
  )
}

/** What was looked at besides the rules. */
function seen({ relays, links, isServiceKnown }: Looked): string {
  return [
    ...(relays > 0 ? [needTexts.relaysHeard(relays)] : []),
    ...(links > 0 ? [needTexts.linksUp(links)] : []),
    ...(isServiceKnown ? [needTexts.serviceWell] : []),
  ].join(' · ')
}

type LineProps = {
  isWell: boolean
  title: string
  details: readonly string[]
  children?: ComponentChildren
}

function Line({ isWell, title, details, children }: LineProps) {
  return (
    <div class={isWell ? 'calm well' : 'calm'} role="status">
      <Icon name={isWell ? 'check' : 'bell'} />
      <div class="grow break">
        {title} <span class="faint">{details.filter((detail) => detail !== '').join(' · ')}</span>
      </div>
      {children}
    </div>
  )
}
