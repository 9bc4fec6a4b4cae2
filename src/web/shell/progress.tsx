import { online } from '../api.ts'
import { stamp } from '../format.ts'
import { keptAt } from '../state/offline-cache.ts'
import { awaited } from '../state/load.ts'
import { t } from '../strings.ts'

/**
 * Shows that data is loading, and the age of the data shown meanwhile. It stands in the margin of the page, so it moves
 * nothing.
 */
export function Progress() {
  const isAwaited = online.value && awaited.value > 0
  const at = online.value ? keptAt.value : null
  return (
    <div class="progress" role="status">
      {(isAwaited || at !== null) && (
        <p>
          <span class="progress-line" aria-hidden="true" />
          {t.common.loading} {at !== null && t.shell.keptFrom(stamp(at))}
        </p>
      )}
    </div>
  )
}
