import { useSignal } from '@preact/signals'
import { MAX_BOARD_CHARTS } from '../../../shared/mesh/boards.ts'
import { api, ask } from '../../api.ts'
import { LinesBox } from '../../parts/charts/lines-box.tsx'
import { SaveChart } from '../../parts/charts/save-chart.tsx'
import { type Source, useLines } from '../../parts/charts/series.ts'
import { askFirst } from '../../parts/dialog.tsx'
import { RangeControl } from '../../parts/form/range-control.tsx'
import { Empty, Failure, say } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { navigate, place } from '../../router.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { nodeByNum, nodeName, shortNameOf, useNames } from '../../state/mesh/nodes.ts'
import { type Range, readRange } from '../../state/range.ts'
import { isWall, startWall } from '../../state/wall.ts'
import { boardTexts } from '../../strings/mesh/boards.ts'
import { nodeTexts } from '../../strings/mesh/node.ts'
import { t } from '../../strings.ts'
import { BoardDialog } from './board-dialog.tsx'
import { type Board, type Chart, contentOf, moved, titleOf } from './board-state.ts'
import { MoveButtons } from './boards.tsx'
import './boards.css'
import { ChartDialog } from './chart-dialog.tsx'

const USUAL = '24h'
/** Charts of more lines have short names on a wall. */
const SHORT_FROM = 4

/** The charts of a board, over one time. */
export function BoardPage({ id }: { id: string }) {
  useNames()
  const { data, error, reload } = useLoad(
    async () => (await ask(api.boards[':id'].$get({ param: { id } }))).board,
    [id],
  )
  const isOpen = useSignal(false)
  const isChanging = useSignal(false)
  const edited = useSignal<number | null>(null)
  const changing = useAction()
  const board = data.value
  const up = { path: '/boards', name: t.nav.boards }
  if (error.value?.code === 'not_found') {
    return (
      <Page title={boardTexts.gone} up={up}>
        <Empty icon="boards">
          <p>{boardTexts.goneHelp}</p>
        </Empty>
      </Page>
    )
  }
  if (board === null) {
    return (
      <Page title={t.nav.boards} up={up}>
        <Failure error={error.value} retry={reload} />
      </Page>
    )
  }
  const put = async (next: Board) => {
    const answer = await ask(api.boards[':id'].$put({ param: { id }, json: contentOf(next) }))
    data.value = answer.board
  }
  const putCharts = (charts: readonly Chart[]) => put({ ...board, charts: [...charts] })
  const { range } = readRange(place.value.query, USUAL)
  const copy = () =>
    changing.run(async () => {
      const made = await ask(api.boards.$post({ json: { ...contentOf(board), sharing: 'nobody', readers: [] } }))
      say(boardTexts.copied)
      navigate(`/boards/${made.board.id}`)
    })
  const { charts } = board
  const isChanged = board.isOwn && (isChanging.value || charts.length === 0)
  return (
    <Page
      title={board.name}
      up={up}
      actions={
        <>
          {charts.length > 0 && (
            <button type="button" class="button" onClick={startWall}>
              {t.finder.wall}
            </button>
          )}
          <button type="button" class="button" onClick={copy}>
            {boardTexts.copy}
          </button>
          {board.isOwn && charts.length > 0 && (
            <button
              type="button"
              class="button"
              aria-pressed={isChanged}
              onClick={() => (isChanging.value = !isChanging.value)}
            >
              {boardTexts.changeBoard}
            </button>
          )}
        </>
      }
    >
      <div class="toolbar">
        <RangeControl fallback={USUAL} />
        {isChanged && charts.length < MAX_BOARD_CHARTS && (
          <button type="button" class="button" onClick={() => (edited.value = charts.length)}>
            {boardTexts.addChart}
          </button>
        )}
        {isChanged && (
          <button type="button" class="button" onClick={() => (isOpen.value = true)}>
            {boardTexts.settings}
          </button>
        )}
      </div>
      <Failure error={error.value} retry={reload} />
      <Failure error={changing.error.value} />
      {charts.length === 0 && (
        <Empty icon="boards" title={boardTexts.empty}>
          {board.isOwn && <p>{boardTexts.emptyHelp}</p>}
        </Empty>
      )}
      {charts.length > 0 && (
        <div class="board">
          {charts.map((chart, index) => (
            <BoardChart
              // The same chart stays itself when others move.
              key={`${JSON.stringify(chart)} ${charts.slice(0, index).filter((other) => isSame(other, chart)).length}`}
              chart={chart}
              range={range}
              index={index}
              count={charts.length}
              isBusy={changing.busy.value}
              onMove={isChanged ? (by) => changing.run(() => putCharts(moved(charts, index, by))) : null}
              onEdit={() => (edited.value = index)}
              onRemove={() =>
                askFirst({
                  text: boardTexts.removeSure(titleOf(chart)),
                  confirm: boardTexts.remove(titleOf(chart)),
                  isDangerous: true,
                  act: () => putCharts(charts.filter((_, at) => at !== index)),
                })
              }
            />
          ))}
        </div>
      )}
      {isOpen.value && <BoardDialog board={board} onSave={put} onClose={() => (isOpen.value = false)} />}
      {edited.value !== null && (
        <ChartDialog
          chart={charts[edited.value] ?? null}
          onSave={(chart) => {
            const at = edited.value ?? charts.length
            return putCharts([...charts.slice(0, at), chart, ...charts.slice(at + 1)])
          }}
          onClose={() => (edited.value = null)}
        />
      )}
    </Page>
  )
}

const isSame = (a: Chart, b: Chart) => JSON.stringify(a) === JSON.stringify(b)

type ChartProps = {
  chart: Chart
  range: Range
  index: number
  count: number
  isBusy: boolean
  /** Null: the board is only read. */
  onMove: ((by: -1 | 1) => void) | null
  onEdit(): void
  onRemove(): void
}

function BoardChart({ chart, range, index, count, isBusy, onMove, onEdit, onRemove }: ChartProps) {
  const title = titleOf(chart)
  // On a wall many lines would leave no room for the chart.
  const isShort = isWall.value && chart.nodes.length * chart.metrics.length > SHORT_FROM
  const sources = chart.nodes.map(({ nodeNum, nodeId, name }): Source => {
    const node = nodeByNum(nodeNum)
    return { nodeId, name: node === undefined ? (name ?? nodeId) : isShort ? shortNameOf(node) : nodeName(node) }
  })
  const { lines, error, reload } = useLines(sources, chart.metrics, range)
  const isEmpty = lines?.every(({ series }) => series.series.length === 0) ?? false
  return (
    <Card
      title={title}
      actions={
        <>
          {lines !== null && <SaveChart title={title} lines={lines} range={range} isNamed />}
          {onMove !== null && (
            <>
              <button type="button" class="button small" aria-label={boardTexts.change(title)} onClick={onEdit}>
                {t.common.edit}
              </button>
              <button
                type="button"
                class="button small danger-quiet"
                aria-label={boardTexts.remove(title)}
                onClick={onRemove}
              >
                {t.common.delete}
              </button>
              <MoveButtons name={title} index={index} count={count} isBusy={isBusy} onMove={onMove} />
            </>
          )}
        </>
      }
    >
      <Failure error={error.value} retry={reload} />
      {lines === null && error.value === null && <div class="chart-awaited" />}
      {isEmpty && <p class="faint">{sources.length === 0 ? boardTexts.noneOfNodes : nodeTexts.noHistory}</p>}
      {lines !== null && !isEmpty && <LinesBox lines={lines} range={range} />}
    </Card>
  )
}
