import { online } from '../api.ts'
import { info } from '../state/mesh/links.ts'
import { liveState } from '../state/live.ts'
import { has } from '../state/session.ts'
import { t } from '../strings.ts'

/** The state of the radio link in one line. Rendered only for users who may see it. */
export function LinkState() {
  return has('radio') ? <KnownLinkState /> : null
}

function KnownLinkState() {
  const known = info.value
  if (known === null) return <div class="link-state" />
  if (!online.value) return <div class="link-state">{t.shell.linkUnknown}</div>
  const worst = known.links.find(({ state }) => state !== 'connected') ?? known.links[0]
  const state = worst?.state ?? 'none'
  return (
    <div class={`link-state link-${state}`} title={worst?.reason ?? undefined}>
      <span class="dot" aria-hidden="true" />
      {t.shell.link[state]}
    </div>
  )
}

/** Whether events arrive immediately. */
export function LiveMark() {
  const state = online.value ? liveState.value : 'cut'
  if (state === 'off') return null
  return (
    <div class={`link-state live-${state}`}>
      <span class="dot" aria-hidden="true" />
      {t.shell.live[state]}
    </div>
  )
}
