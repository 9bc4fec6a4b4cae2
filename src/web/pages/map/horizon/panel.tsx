import { useId } from 'preact/hooks'
import { radioHorizon } from '../../../../shared/mesh/radio-horizon.ts'
import { distance, shownUnit } from '../../../measure.ts'
import { setQuery } from '../../../router.ts'
import { horizonTexts } from '../../../strings/mesh/horizon.ts'
import { askedHeight, MAX_HEIGHT, MIN_HEIGHT } from './asked.ts'

/** The height of the node's antenna, which nobody tells by radio, and how far it then sees. */
export function Horizon() {
  const id = useId()
  const height = askedHeight()
  const { unit, convert } = shownUnit('m')
  const metre = convert(1)
  return (
    <div class="map-part">
      <div class="inline">
        <label for={id}>{horizonTexts.height(unit ?? 'm')}</label>
        <input
          id={id}
          type="number"
          inputmode="decimal"
          step="any"
          min={Math.ceil(MIN_HEIGHT * metre)}
          max={MAX_HEIGHT * metre}
          value={height === null ? '' : String(Math.round(height * metre * 10) / 10)}
          aria-describedby={`${id}-about`}
          onChange={({ currentTarget }) => {
            const wanted = currentTarget.valueAsNumber / metre
            setQuery({ antenna: Number.isFinite(wanted) ? String(Math.round(wanted * 100) / 100) : '' })
          }}
        />
      </div>
      <p id={`${id}-about`} class="faint" role="status">
        {height === null ? horizonTexts.about : horizonTexts.reach(distance(radioHorizon(height)))}
      </p>
    </div>
  )
}
