import { bytes, shortDay } from '../../format.ts'
import { systemTexts } from '../../strings/system/system.ts'

type Sample = { readonly at: number; readonly roomBytes: number }

const WIDTH = 320
const HEIGHT = 60

/** The room for new data over the last week, from nothing to the most there was. */
export function RoomChart({ samples }: { samples: readonly Sample[] }) {
  const [first] = samples
  const last = samples.at(-1)
  if (first === undefined || last === undefined || samples.length < 3) return null
  const most = Math.max(1, ...samples.map(({ roomBytes }) => roomBytes))
  const length = Math.max(1, last.at - first.at)
  const points = samples.map(
    ({ at, roomBytes }) =>
      `${(((at - first.at) / length) * WIDTH).toFixed(1)},${(HEIGHT - (roomBytes / most) * (HEIGHT - 2)).toFixed(1)}`,
  )
  const label = `${systemTexts.week}: ${bytes(first.roomBytes)} → ${bytes(last.roomBytes)}`
  return (
    <figure class="room-chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <polygon points={`0,${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}`} />
        <polyline points={points.join(' ')} />
      </svg>
      <figcaption class="faint">
        <span>{shortDay(first.at)}</span>
        <span>{systemTexts.week}</span>
        <span>{shortDay(last.at)}</span>
      </figcaption>
    </figure>
  )
}
