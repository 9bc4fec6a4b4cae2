import { saveBlob, saveCsv } from '../../csv.ts'
import { useAction } from '../../state/load.ts'
import { type Range, spanOf } from '../../state/range.ts'
import { chartTexts } from '../../strings/mesh/charts.ts'
import { t } from '../../strings.ts'
import { Failure } from '../notice.tsx'
import type { Line } from './chart.ts'
import { fileNameOf, tableOf } from './table.ts'

type Props = { title: string; lines: readonly Line[]; range: Range; file?: string; isNamed?: boolean }

/** Saves a chart as a table or a picture. `isNamed`: the page has several charts, so the buttons name theirs. */
export function SaveChart({ title, lines, range, file = fileNameOf(title), isNamed = false }: Props) {
  const drawing = useAction()
  const savePicture = () =>
    drawing.run(async () => {
      const { drawPicture } = await import('./picture.ts')
      const picture = await drawPicture(title, lines, spanOf(range, Date.now()))
      if (picture === null) throw new Error('the picture could not be made')
      saveBlob(`${file}.png`, picture)
    })
  const nameOf = (kind: string) => (isNamed ? `${t.common.exportAs} ${kind}: ${title}` : undefined)
  if (lines.every(({ series }) => series.series.length === 0)) return null
  return (
    <>
      <Failure error={drawing.error.value} />
      <button
        type="button"
        class="button small"
        aria-label={nameOf(t.common.csv)}
        onClick={() => saveCsv(file, tableOf(lines))}
      >
        {t.common.exportAs} {t.common.csv}
      </button>
      <button
        type="button"
        class="button small"
        aria-label={nameOf(chartTexts.png)}
        disabled={drawing.busy.value}
        onClick={savePicture}
      >
        {t.common.exportAs} {chartTexts.png}
      </button>
    </>
  )
}
