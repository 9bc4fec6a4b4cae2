import { api, ask, online } from '../api.ts'
import { liveState } from '../state/live.ts'
import { useLoad } from '../state/load.ts'
import { has } from '../state/session.ts'
import { t } from '../strings.ts'

const POLL_MS = 10_000

/** How the radio link is, in one line. Drawn only for those who may know. */
export function LinkState() {
  return has('radio') ? <KnownLinkState /> : null
}

function KnownLinkState() {
  const { data } = useLoad(() => ask(api.info.$get()), [], POLL_MS, ['link'])
  const info = data.value
  if (info === null) return <div class="link-state" />
  if (!online.value) return <div class="link-state">{t.shell.linkUnknown}</div>
  const links = info.links
  const worst = links.find(({ state }) => state !== 'connected') ?? links[0]
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
