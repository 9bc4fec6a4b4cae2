import { Age } from '../../../parts/age.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Ways } from '../../../parts/mesh/way.tsx'
import type { Traceroute } from '../../../parts/mesh/traceroute.ts'
import { setQuery } from '../../../router.ts'
import { t } from '../../../strings.ts'

/** The traceroute that the map shows, in words. */
export function OneTrace({ trace }: { trace: Traceroute }) {
  return (
    <div class="map-part">
      <div class="map-part-head">
        <h2>{t.routes.one}</h2>
        <button
          type="button"
          class="icon-button"
          aria-label={t.map.hideRoute}
          onClick={() => setQuery({ trace: '', routes: '' })}
        >
          <Icon name="close" />
        </button>
      </div>
      <p class="faint">
        <Age at={trace.answeredAt ?? trace.timestamp} />
      </p>
      <Ways trace={trace} />
    </div>
  )
}
