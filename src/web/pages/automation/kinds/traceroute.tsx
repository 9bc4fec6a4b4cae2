import { catalog } from '../../../language.ts'
import { type Signal, useSignal } from '@preact/signals'
import { Segments } from '../../../parts/form/field.tsx'
import { PickedNodes } from '../../../parts/form/picked-nodes.tsx'
import { Group } from '../../../parts/form/labelled.tsx'
import { Card } from '../../../parts/page.tsx'
import { duration } from '../../../format.ts'
import { nameOfId } from '../../../state/mesh/nodes.ts'
import { can } from '../../../state/session.ts'
import { a } from '../../../strings/automation.ts'
import { type Form, Line, NodeSelect } from '../fields.tsx'
import { nodeIdOf } from '../rule.ts'
import type { KindView, RuleOf } from './kind.ts'

type Draft = {
  readonly everyMinutes: string
  readonly targets: 'oldest' | 'list'
  readonly activeWithinHours: string
  /** Node ids. */
  readonly nodes: readonly string[]
}

export const tracerouteKind = catalog('tracerouteKind', {
  name: 'Traceroute',
  help: 'Sends traceroutes to nodes, one after another.',
})

export const traceroute: KindView<RuleOf<'traceroute'>, Draft> = {
  ...tracerouteKind,
  tokens: [],
  empty: { everyMinutes: '60', targets: 'oldest', activeWithinHours: '24', nodes: [] },
  draftOf({ targets, everyMinutes }) {
    const whom =
      targets.kind === 'list'
        ? { nodes: targets.nodes.map(nodeIdOf) }
        : { activeWithinHours: String(targets.activeWithinHours) }
    return { everyMinutes: String(everyMinutes), targets: targets.kind, ...whom }
  },
  ruleOf: ({ everyMinutes, targets, nodes, activeWithinHours }, common) => ({
    kind: 'traceroute',
    ...common,
    everyMinutes: Number(everyMinutes),
    targets:
      targets === 'list'
        ? { kind: 'list', nodes: [...nodes] }
        : { kind: 'oldest', activeWithinHours: Number(activeWithinHours) },
  }),
  isWhole: ({ targets, nodes }) => targets === 'oldest' || nodes.length > 0,
  standIn: { targets: 'oldest' },
  Fields,
  summary: ({ everyMinutes, targets }) => [
    a.every(duration(everyMinutes * 60)),
    targets.kind === 'oldest'
      ? a.targetKinds.oldest
      : targets.nodes.map((nodeNum) => nameOfId(nodeIdOf(nodeNum))).join(', '),
  ],
  facts: () => [],
}

function Fields({ form }: { form: Form<Draft> }) {
  const { draft, set } = form
  return (
    <>
      <Card title={a.when}>
        <Line
          form={form}
          label={a.everyMinutes}
          hint={a.everyMinutesHint}
          error={a.everyMinutesHint}
          path="everyMinutes"
          type="number"
          value={draft.everyMinutes}
          onInput={(everyMinutes) => set({ everyMinutes })}
        />
      </Card>
      <Card title={a.targets}>
        <Segments
          label={a.targets}
          value={draft.targets}
          options={[
            ['oldest', a.targetKinds.oldest],
            ['list', a.targetKinds.list],
          ]}
          onChange={(targets) => set({ targets })}
        />
        {draft.targets === 'oldest' ? (
          <Line
            form={form}
            label={a.activeWithin}
            hint={a.activeWithinHint}
            error={a.activeWithinHint}
            path="targets.activeWithinHours"
            type="number"
            value={draft.activeWithinHours}
            onInput={(activeWithinHours) => set({ activeWithinHours })}
          />
        ) : (
          <NodeList form={form} />
        )}
      </Card>
    </>
  )
}

/** A list of nodes in turn, to which nodes are added and from which they are removed. */
function NodeList({ form }: { form: Form<Draft> }) {
  const { draft, set } = form
  const typed = useSignal('')
  const add = (nodeId: string) => {
    typed.value = ''
    if (nodeId !== '' && !draft.nodes.includes(nodeId)) set({ nodes: [...draft.nodes, nodeId] })
  }
  const error = form.errorAt('targets.nodes')
  return (
    <Group legend={a.nodes} error={error && a.nodesNeeded}>
      <PickedNodes nodes={draft.nodes} onChange={(nodes) => set({ nodes })} />
      {can('nodes', 'read') ? (
        <NodeSelect label={a.addNode} value="" none={a.chooseNode} onChange={add} />
      ) : (
        <AddById typed={typed} onAdd={add} />
      )}
    </Group>
  )
}

function AddById({ typed, onAdd }: { typed: Signal<string>; onAdd(nodeId: string): void }) {
  return (
    <div class="add-line">
      <NodeSelect label={a.addNode} value={typed.value} none="" onChange={(nodeId) => (typed.value = nodeId)} />
      <button type="button" class="button" onClick={() => onAdd(typed.value)}>
        {a.add}
      </button>
    </div>
  )
}
