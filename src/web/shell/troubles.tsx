import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { isOwnKind } from '../../shared/mesh/link-kinds.ts'
import { heardAt, online } from '../api.ts'
import { stamp } from '../format.ts'
import { href } from '../router.ts'
import { keptAt } from '../state/offline-cache.ts'
import { canSendWithout, type LostLink, lostLinks } from '../state/mesh/links.ts'
import { liveState } from '../state/live.ts'
import { can, refreshStatus } from '../state/session.ts'
import { t } from '../strings.ts'
import { Icon } from '../parts/icon.tsx'
import { say } from '../parts/notice.tsx'

const RETRY_MS = 3000
const CUT_MS = 2000

/** Problems, shown at the lower edge of every page, where they do not move anything that a user is about to press. */
export function Troubles() {
  return (
    <div class="troubles">
      <Connection />
      <LostRadios />
    </div>
  )
}

/** Shows when the service is unreachable or live updates are interrupted, and retries until all is well. */
function Connection() {
  const isOnline = online.value
  const wasAway = useRef(false)
  useEffect(() => {
    if (isOnline) {
      if (wasAway.current && navigator.onLine) say(t.shell.back)
      wasAway.current = false
      return
    }
    wasAway.current = true
    const timer = setInterval(() => void refreshStatus(), RETRY_MS)
    return () => clearInterval(timer)
  }, [isOnline])
  const isCut = useIsCut()
  return (
    <div role="status">
      {(!isOnline || isCut) && (
        <div class="trouble">
          <Icon name="warning" />
          <span>
            {isOnline ? t.shell.cut : navigator.onLine ? t.shell.offline : t.shell.offlineBrowser}{' '}
            <span class="nowrap">{t.shell.asOf(stamp(keptAt.value ?? heardAt.peek()))}</span>
          </span>
        </div>
      )}
    </div>
  )
}

/** Most interruptions end before anybody could read about them. */
function useIsCut(): boolean {
  const isCut = liveState.value === 'cut'
  const isLasting = useSignal(false)
  useEffect(() => {
    isLasting.value = false
    if (!isCut) return
    const timer = setTimeout(() => (isLasting.value = true), CUT_MS)
    return () => clearTimeout(timer)
  }, [isCut])
  return isCut && isLasting.value
}

/** Disconnected radios and brokers: since when, what that means for sending, and what to do. */
function LostRadios() {
  // While the service itself is unreachable, the state of its radios is unknown.
  const lost = online.value ? lostLinks.value : []
  return (
    <div role="status">
      {lost.length > 0 && (
        <div class="trouble">
          <Icon name="radio" />
          <div>
            <p>
              <strong>{t.lost.title(lost.map((one) => t.lost.one(nameOf(one), stamp(one.since))))}</strong>{' '}
              {effectOf(lost)}
            </p>
            <p>
              {adviceOn(lost)} {can('dashboard', 'read') && <a href={href('/')}>{t.lost.more}</a>}
            </p>
          </div>
        </div>
      )}
    </div>
  )
}

function nameOf({ link }: LostLink): string {
  return isOwnKind(link.kind) ? t.lost.radio(link.name) : t.lost.broker(link.name)
}

function effectOf(lost: readonly LostLink[]): string {
  if (!lost.some(({ link }) => isOwnKind(link.kind))) return t.lost.onlyHeard
  return canSendWithout(lost) ? t.lost.others : t.lost.noSending
}

function adviceOn(lost: readonly LostLink[]): string {
  const isRadio = lost.some(({ link }) => isOwnKind(link.kind))
  const isBroker = lost.some(({ link }) => !isOwnKind(link.kind))
  return [isRadio ? t.lost.checkRadio : '', isBroker ? t.lost.checkBroker : ''].filter(Boolean).join(' ')
}
