import { anyOf, humanize } from '../../../format.ts'
import { catalog } from '../../../language.ts'
import { useSignal } from '@preact/signals'
import { nameOf, nameOfId } from '../../../state/mesh/nodes.ts'
import { NodePicker } from '../../../parts/form/node-picker.tsx'
import { PickedNodes } from '../../../parts/form/picked-nodes.tsx'
import { Field, Select } from '../../../parts/form/field.tsx'
import { Group } from '../../../parts/form/labelled.tsx'
import { shownUnit } from '../../../measure.ts'
import { alertTexts } from '../../../strings/alerts.ts'
import type { RuleOf } from '../rule.ts'

export type Watched = RuleOf<'node_silent'>['nodes']

export const ALL: Watched = { kind: 'all' }

export const watchedTexts = catalog('watchedTexts', {
  all: 'a node',
  favorites: 'a favourite',
  own: 'an own radio',
  role: (roles: string) => `a node with the role ${roles}`,
})

/** The watched nodes in words. */
export function who(nodes: Watched): string {
  switch (nodes.kind) {
    case 'all':
      return watchedTexts.all
    case 'favorites':
      return watchedTexts.favorites
    case 'own':
      return watchedTexts.own
    case 'role':
      return watchedTexts.role(anyOf(nodes.roles))
    case 'list':
      return anyOf([...nodes.nodes.slice(0, 3).map(shownName), ...(nodes.nodes.length > 3 ? ['…'] : [])])
    default:
      return nodes satisfies never
  }
}

/** The !hex id of a node of a rule. */
export const idOf = (node: number | string) =>
  typeof node === 'number' ? `!${node.toString(16).padStart(8, '0')}` : node

/** The name of a node of a rule. */
export const shownName = (node: number | string) =>
  typeof node === 'number' ? nameOf(node, idOf(node)) : nameOfId(node)

const KINDS = ['all', 'favorites', 'own', 'role', 'list'] as const

type Props = { rule: { readonly nodes: Watched }; set(changes: { nodes: Watched }): void }

/** Chooses which nodes a rule watches. */
export function WatchedFields({ rule: { nodes: watched }, set: change }: Props) {
  const set = (changed: Watched) => change({ nodes: changed })
  const begin = (kind: (typeof KINDS)[number]): Watched => {
    if (kind === 'role') return { kind, roles: ['ROUTER', 'REPEATER'] }
    return kind === 'list' ? { kind, nodes: [] } : { kind }
  }
  return (
    <>
      <Select
        label={alertTexts.nodes}
        value={watched.kind}
        options={KINDS.map((kind) => [kind, alertTexts.watched[kind]] as const)}
        onChange={(kind) => set(begin(kind))}
      />
      {watched.kind === 'role' && (
        <Roles chosen={watched.roles} set={(roles) => set({ kind: 'role', roles: [...roles] })} />
      )}
      {watched.kind === 'list' && (
        <NodeList chosen={watched.nodes.map(idOf)} onChange={(chosen) => set({ kind: 'list', nodes: [...chosen] })} />
      )}
    </>
  )
}

/** The roles of the protocol, those that relay first. */
const ROLES = [
  'ROUTER',
  'ROUTER_LATE',
  'REPEATER',
  'ROUTER_CLIENT',
  'CLIENT',
  'CLIENT_BASE',
  'CLIENT_MUTE',
  'CLIENT_HIDDEN',
  'TRACKER',
  'SENSOR',
  'TAK',
  'TAK_TRACKER',
  'LOST_AND_FOUND',
]

function Roles({ chosen, set }: { chosen: readonly string[]; set(roles: readonly string[]): void }) {
  return (
    <Group legend={alertTexts.roles} error={chosen.length === 0 ? alertTexts.noRole : null}>
      <div class="choices">
        {[...new Set([...ROLES, ...chosen])].map((role) => (
          <label class="check" key={role}>
            <input
              type="checkbox"
              checked={chosen.includes(role)}
              onChange={(event) => {
                const others = chosen.filter((other) => other !== role)
                set(event.currentTarget.checked ? [...others, role] : others)
              }}
            />{' '}
            {humanize(role)}
          </label>
        ))}
      </div>
    </Group>
  )
}

/** Nodes that are found by name. */
export function NodeList({
  chosen,
  onChange,
}: {
  chosen: readonly string[]
  onChange(chosen: readonly string[]): void
}) {
  return (
    <>
      <PickedNodes nodes={chosen} onChange={onChange} />
      <NodePicker
        label={alertTexts.addNode}
        isOffered={({ nodeId }) => !chosen.includes(nodeId)}
        value=""
        onChoose={(nodeId) => onChange([...chosen, nodeId])}
      />
    </>
  )
}

type NumberProps = {
  label: string
  value: number | null | undefined
  set(value: number): void
  min?: number
  max?: number
}

type MeasureProps = Omit<NumberProps, 'set'> & {
  /** The unit of the service. */
  unit: string | null
  /** Whether it is a difference of two values. */
  isDifference?: boolean
  set(value: number): void
}

/** The number of decimals shown, and stored. A value typed with the shown decimals is shown unchanged afterwards. */
const SHOWN_DIGITS = 3
const SHOWN_PARTS = 10 ** SHOWN_DIGITS
const STORED_DIGITS = 9

/** A measured value that must be given, in the units of this user. */
export function MeasureField({ label, unit, isDifference = false, value, set, min, max, ...rest }: MeasureProps) {
  const shown = shownUnit(unit, isDifference)
  const isConverted = shown.unit !== unit
  const rounded = (n: number) => (isConverted ? Number(n.toFixed(SHOWN_DIGITS)) : n)

  // Inwards, so that no shown bound is outside the stored one.
  const least = (n: number) => (isConverted ? Math.ceil(n * SHOWN_PARTS) / SHOWN_PARTS : n)
  const most = (n: number) => (isConverted ? Math.floor(n * SHOWN_PARTS) / SHOWN_PARTS : n)
  return (
    <NumberField
      {...rest}
      label={shown.unit === null ? label : `${label} (${shown.unit})`}
      value={value === null || value === undefined ? value : rounded(shown.convert(value))}
      {...(min !== undefined && { min: least(shown.convert(min)) })}
      {...(max !== undefined && { max: most(shown.convert(max)) })}
      set={(typed) => set(Number(shown.revert(rounded(typed)).toFixed(STORED_DIGITS)))}
    />
  )
}

/** A number that must be given. */
export function NumberField({ label, value, set, ...bounds }: NumberProps) {
  // The text of a number that is being typed, as “-” or “5.0”, stays as it is.
  const typed = useSignal<{ readonly text: string; readonly value: number | null | undefined } | null>(null)
  const isTyped = typed.value !== null && typed.value.value === value
  return (
    <Field
      label={label}
      type="number"
      step="any"
      required
      {...bounds}
      value={isTyped ? (typed.value?.text ?? '') : value === null || value === undefined ? '' : String(value)}
      onInput={({ currentTarget: { value: text } }) => {
        typed.value = { text, value: text === '' ? value : Number(text) }
        if (text !== '') set(Number(text))
      }}
    />
  )
}
