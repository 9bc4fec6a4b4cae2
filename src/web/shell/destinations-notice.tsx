import { href, place } from '../router.ts'
import { status } from '../state/session.ts'
import { t } from '../strings.ts'
import { Icon } from '../parts/icon.tsx'

/** Destinations of alerts that are new or held, until their owner has looked at them. */
export function DestinationsNotice() {
  const count = status.value?.destinationsToReview ?? 0
  return count === 0 || place.value.path === '/alerts' ? null : (
    <div class="notice notice-bad" role="status">
      <Icon name="warning" />
      <div class="grow">{t.shell.destinationsToReview(count)}</div>
      <a class="button small" href={href('/alerts')}>
        {t.shell.reviewDestinations}
      </a>
    </div>
  )
}
