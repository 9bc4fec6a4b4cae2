import { api, ask } from '../../api.ts'
import { age } from '../../format.ts'
import { useLoad } from '../../state/load.ts'
import { now } from '../../parts/age.tsx'
import { Icon } from '../../parts/icon.tsx'
import { can, has } from '../../state/session.ts'
import { c } from '../../strings/system/configuration.ts'
import { problemWords } from '../../strings/system/radio-problems.ts'
import { t } from '../../strings.ts'
import type { Section } from './model.ts'

/** Why nothing can be changed now. */
export function Offline({ section, byCollector }: { section: Section; byCollector: boolean }) {
  if (byCollector) return <Notice text={c.notListening} />
  if (!has('radio')) return <Notice text={c.edge} />
  return can('info', 'read') ? <KnownReason section={section} /> : <Reason section={section} reason={null} />
}

function KnownReason({ section }: { section: Section }) {
  const { data } = useLoad(() => ask(api.info.$get()), [], 10_000, ['link'])
  const link = data.value?.links.find(({ name }) => name === section.source)
  const state = link === undefined ? null : t.shell.link[link.state]
  const why = link === undefined || link.reason === null ? null : problemWords(link.reason)
  return <Reason section={section} reason={[state, why].filter(Boolean).join(': ')} />
}

function Reason({ section, reason }: { section: Section; reason: string | null }) {
  const since = t.common.ago(age(section.readAt, now.value))
  return <Notice text={c.offline(since)} more={can('configuration', 'write') ? c.offlineKept : ''} reason={reason} />
}

function Notice({ text, more = '', reason = null }: { text: string; more?: string; reason?: string | null }) {
  return (
    <div class="notice notice-warn">
      <Icon name="warning" />
      <div>
        {text} {more}
        {reason !== null && reason !== '' && <div class="about">{reason}</div>}
      </div>
    </div>
  )
}
