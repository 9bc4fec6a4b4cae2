import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { isCalled, type Node, nodeName } from '../../state/mesh.ts'
import { t } from '../../strings.ts'

/** At most this many matches are shown; typing narrows them. */
const MOST_SHOWN = 8

type Props = {
  label: string
  nodes: readonly Node[]
  /** The !hex id of the chosen node; empty: none. */
  value: string
  /** Takes the focus at once, for example in a dialog that was opened for it. */
  autofocus?: boolean
  onChoose(nodeId: string): void
}

/** Finds one of thousands of nodes by typing a part of its name, its id or its number (a combobox of WAI-ARIA 1.2). */
export function NodePicker({ label, nodes, value, autofocus = false, onChoose }: Props) {
  const id = useId()
  const chosen = nodes.find(({ nodeId }) => nodeId === value)
  const typed = useSignal<string | null>(null)
  const active = useSignal(0)
  const wanted = typed.value?.trim().toLowerCase() ?? ''
  const isOpen = typed.value !== null
  const found = isOpen ? find(nodes, wanted) : []
  const choose = (node: Node | undefined) => {
    if (node === undefined) return
    typed.value = null
    onChoose(node.nodeId)
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      typed.value ??= ''
      active.value = Math.max(0, Math.min(Math.min(found.length, MOST_SHOWN) - 1, active.value + (isOpen ? step : 0)))
    } else if (event.key === 'Enter' && isOpen) {
      event.preventDefault()
      choose(found[active.value])
    } else if (event.key === 'Escape' && isOpen) {
      event.stopPropagation()
      typed.value = null
    }
  }
  return (
    <div class="field node-picker">
      <label for={id}>{label}</label>
      <input
        id={id}
        role="combobox"
        autocomplete="off"
        autofocus={autofocus}
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && found.length > 0 ? `${id}-${active.value}` : undefined}
        placeholder={t.nodes.searchHint}
        value={typed.value ?? (chosen === undefined ? '' : nodeName(chosen))}
        onFocus={(event) => event.currentTarget.select()}
        onInput={(event) => {
          typed.value = event.currentTarget.value
          active.value = 0
        }}
        onKeyDown={press}
        onBlur={() => (typed.value = null)}
      />
      <ul id={`${id}-list`} role="listbox" aria-label={t.nodes.found} hidden={!isOpen || found.length === 0}>
        {found.slice(0, MOST_SHOWN).map((node, index) => (
          <li
            key={node.nodeId}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active.value}
            // Before the field loses the focus, which closes the list.
            onPointerDown={(event) => {
              event.preventDefault()
              choose(node)
            }}
          >
            <span class="clip">{nodeName(node)}</span> <span class="faint mono">{node.nodeId}</span>
          </li>
        ))}
      </ul>
      <p class="about" role="status">
        {isOpen && (found.length === 0 ? t.nodes.none : t.nodes.matches(found.length, MOST_SHOWN))}
      </p>
    </div>
  )
}

/** Names that begin with the search term come first. */
function find(nodes: readonly Node[], wanted: string): readonly Node[] {
  const rank = (node: Node) => (nodeName(node).toLowerCase().startsWith(wanted) ? 0 : 1)
  return nodes
    .filter((node) => isCalled(node, wanted))
    .toSorted((a, b) => rank(a) - rank(b) || nodeName(a).localeCompare(nodeName(b)))
}
