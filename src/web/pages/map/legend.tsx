import { duration } from '../../format.ts'
import { activeMs } from '../../state/mesh/nodes.ts'
import { t } from '../../strings.ts'
import { FAIR_DB, GOOD_DB } from '../../parts/mesh/snr.ts'

/** The meaning of the colours: in short, and in full when opened. */
export function Legend({ hasLines }: { hasLines: boolean }) {
  const active = t.map.legend.active(duration(activeMs.value / 1000))
  return (
    <details class="legend">
      <summary>
        {t.map.ages.map((name, index) => (
          <span key={name}>
            <i class={`age-${index}`} aria-hidden="true" />
            {name}
          </span>
        ))}
        <span class="legend-name">{t.map.legend.title}</span>
      </summary>
      <ul>
        {[active, t.map.legend.day, t.map.legend.older].map((text, index) => (
          <li key={text}>
            <i class={`age-${index}`} aria-hidden="true" />
            {text}
          </li>
        ))}
        <li>
          <i class="age-0 relay" aria-hidden="true" />
          {t.map.legend.relay}
        </li>
        <li>
          <i class="age-0 favorite" aria-hidden="true" />
          {t.map.legend.favorite}
        </li>
        <li>
          <i class="age-0 local" aria-hidden="true" />
          {t.map.legend.local}
        </li>
        <li>
          <i class="cell" aria-hidden="true" />
          {t.map.precision}
        </li>
        {hasLines && <Strengths />}
      </ul>
    </details>
  )
}

function Strengths() {
  const strengths = [
    ['good', t.map.atLeast(GOOD_DB)],
    ['fair', t.map.atLeast(FAIR_DB)],
    ['weak', t.map.weaker],
    ['unknown', t.map.unknownHop],
  ] as const
  return (
    <>
      {strengths.map(([name, text]) => (
        <li class={`strength snr-${name}`} key={name}>
          <i class={name === 'unknown' ? 'stroke dashed' : 'stroke'} aria-hidden="true" />
          {text}
        </li>
      ))}
    </>
  )
}
