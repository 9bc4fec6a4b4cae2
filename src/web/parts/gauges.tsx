import './gauges.css'
import { tenths } from '../format.ts'
import { decimal } from '../format.ts'
import { t } from '../strings.ts'

/** Charge in percent; over 100 means external power. */
export function Battery({ level }: { level: number | null | undefined }) {
  if (level === null || level === undefined) return <span class="faint">{t.common.none}</span>
  if (level > 100)
    return (
      <span class="faint" title={t.nodes.powerHelp}>
        {t.nodes.power}
      </span>
    )
  const mood = level < 20 ? 'bad' : level < 40 ? 'warn' : 'good'
  return (
    <span class={`meter ${mood}`}>
      <span class="meter-bar" aria-hidden="true">
        <span style={{ width: `${Math.max(4, level)}%` }} />
      </span>
      {`${decimal(level, 0)} %`}
    </span>
  )
}

/** Signal-to-noise ratio in four steps; LoRa still receives at −20 dB. */
export function Signal({ snr }: { snr: number | null | undefined }) {
  if (snr === null || snr === undefined) return <span class="faint">{t.common.none}</span>
  const steps = snr > 0 ? 4 : snr > -7 ? 3 : snr > -13 ? 2 : 1
  return (
    <span class="bars">
      <span aria-hidden="true" class={`steps-${steps}`}>
        <i />
        <i />
        <i />
        <i />
      </span>
      {`${tenths(snr)} dB`}
    </span>
  )
}
