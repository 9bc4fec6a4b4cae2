import { useSignal } from '@preact/signals'
import { MAX_CHART_LINES, MAX_CHART_NODES, MAX_CHART_TITLE } from '../../../shared/mesh/boards.ts'
import { MetricPicker, USUAL_METRICS, useMetrics } from '../../parts/charts/metric-picker.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field, handleForm, SaveOrCancel } from '../../parts/form/field.tsx'
import { NodePicker } from '../../parts/form/node-picker.tsx'
import { PickedNodes } from '../../parts/form/picked-nodes.tsx'
import { Failure } from '../../parts/notice.tsx'
import { useAction } from '../../state/load.ts'
import { boardTexts } from '../../strings/mesh/boards.ts'
import type { Chart } from './board-state.ts'

/** `chart`: null for a new one. */
type Props = { chart: Chart | null; onSave(chart: Chart): Promise<void>; onClose(): void }

/** The nodes and measurements of a chart. */
export function ChartDialog({ chart, onSave, onClose }: Props) {
  const { error, busy, run } = useAction()
  const nodes = useSignal<readonly string[]>(chart?.nodes.map(({ nodeId }) => nodeId) ?? [])
  const metrics = useSignal<readonly string[]>(chart?.metrics ?? USUAL_METRICS.slice(0, 1))
  const offered = useMetrics(nodes.value)
  const isMissing = useSignal(false)
  const most = Math.min(MAX_CHART_NODES, Math.floor(MAX_CHART_LINES / metrics.value.length))
  const submit = handleForm(async (text) => {
    isMissing.value = nodes.value.length === 0
    if (isMissing.value) return
    const chosen = nodes.value.map((nodeId) => ({ nodeId, nodeNum: Number.parseInt(nodeId.slice(1), 16), name: null }))
    const isDone = await run(() => onSave({ title: text('heading'), metrics: [...metrics.value], nodes: chosen }))
    if (isDone) onClose()
  })
  return (
    <Dialog title={chart === null ? boardTexts.addChart : boardTexts.editChart} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <PickedNodes nodes={nodes.value} onChange={(next) => (nodes.value = next)} />
        {nodes.value.length < most && (
          <NodePicker
            label={boardTexts.addNode}
            value=""
            none=""
            autofocus={chart === null}
            error={isMissing.value && nodes.value.length === 0 ? boardTexts.noNodes : null}
            isOffered={({ nodeId }) => !nodes.value.includes(nodeId)}
            onChoose={(nodeId) => {
              if (nodeId !== '') nodes.value = [...nodes.value, nodeId]
            }}
          />
        )}
        <MetricPicker
          chosen={metrics.value}
          offered={offered}
          nodes={nodes.value.length}
          onChange={(next) => (metrics.value = next)}
        />
        <Field
          label={boardTexts.title}
          hint={boardTexts.titleHelp}
          name="heading"
          defaultValue={chart?.title ?? ''}
          maxLength={MAX_CHART_TITLE}
          autocomplete="off"
        />
        <Failure error={error.value} />
        <SaveOrCancel busy={busy.value} onCancel={onClose} />
      </form>
    </Dialog>
  )
}
