import { useId } from 'preact/hooks'
import { duration } from '../../../format.ts'
import { activeMs } from '../../../state/mesh/nodes.ts'
import { t } from '../../../strings.ts'
import { FAIR_DB, GOOD_DB } from '../../../parts/mesh/snr.ts'
import { shownLayers } from '../switches.ts'
import { chooseColouring, colouringName, shownScale } from '../colouring/chosen-scale.ts'
import { BY_AGE, COLOURINGS } from '../colouring/colouring.ts'
import './legend.css'

/**
 * What the nodes are coloured by, to choose, and the meaning of the colours: in short, and in full when opened.
 * `isBrief`: only what opens.
 */
export function Legend({ hasLines, isBrief = false }: { hasLines: boolean; isBrief?: boolean }) {
  const { names, help, tokens } = shownScale() ?? ageScale()
  const [first] = tokens
  const shades = tokens.map((token) => token.slice(2))
  // The shapes have the colour of the first class.
  const sample = first?.slice(2)
  return (
    <div class="legend">
      {!isBrief && <Chooser />}
      <details>
        <summary>
          {!isBrief &&
            names.map((name, index) => (
              <span key={name}>
                <i class={shades[index]} aria-hidden="true" />
                {name}
              </span>
            ))}
          <span class="legend-name">{t.map.legend.title}</span>
        </summary>
        <ul>
          {help.map((text, index) => (
            <li key={text}>
              <i class={shades[index]} aria-hidden="true" />
              {text}
            </li>
          ))}
          {(['relay', 'favorite', 'local'] as const).map((shape) => (
            <li key={shape}>
              <i class={`${sample} ${shape}`} aria-hidden="true" />
              {t.map.legend[shape]}
            </li>
          ))}
          <li>
            <i class="cell" aria-hidden="true" />
            {t.map.precision}
          </li>
          {hasLines && <Strengths />}
        </ul>
      </details>
    </div>
  )
}

function Chooser() {
  const id = useId()
  return (
    <>
      <label class="sr-only" for={id}>
        {t.map.colour}
      </label>
      <select
        id={id}
        value={colouringName()}
        onChange={({ currentTarget: { value } }) => chooseColouring(COLOURINGS.find((name) => name === value) ?? 'age')}
      >
        {COLOURINGS.map((name) => (
          <option key={name} value={name}>
            {t.map.colourBy[name]}
          </option>
        ))}
      </select>
    </>
  )
}

function ageScale() {
  const { active, day, older } = t.map.legend
  return {
    tokens: BY_AGE.tokens,
    names: t.map.ages,
    help: [active(duration(activeMs.value / 1000)), day, older],
  }
}

function Strengths() {
  const strengths = [
    ['good', t.map.atLeast(GOOD_DB)],
    ['fair', t.map.atLeast(FAIR_DB)],
    ['weak', t.map.weaker],
    ['unknown', t.map.unknownHop],
  ] as const
  const { heard, broker } = shownLayers()
  return (
    <>
      {strengths.map(([name, text]) => (
        <li class={`strength snr-${name}`} key={name}>
          <i class={name === 'unknown' ? 'stroke dashed' : 'stroke'} aria-hidden="true" />
          {text}
        </li>
      ))}
      {heard && broker && (
        <li class="strength snr-unknown">
          <i class="stroke broker" aria-hidden="true" />
          {t.map.layerNames.broker}
        </li>
      )}
    </>
  )
}
