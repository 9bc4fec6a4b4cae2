import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { MAX_FOUND, useFoundNodes } from '../../state/mesh/find-nodes.ts'
import { type Node, nameOfId, nodeName } from '../../state/mesh/nodes.ts'
import { t } from '../../strings.ts'

/** At most this many matches are shown; typing narrows them. */
const MAX_SHOWN = 8

type Props = {
  label: string
  /** The !hex id of the chosen node; empty: none. */
  value: string
  /** The meaning of choosing no node, where that is allowed. */
  none?: string
  error?: string | null
  /** Takes the focus at once, for example in a window that was opened for it. */
  autofocus?: boolean
  /** Whether this node may be chosen. */
  isOffered?(node: Node): boolean
  onChoose(nodeId: string): void
}

/** Finds one of thousands of nodes by typing a part of its name, its id or its number (a combobox of WAI-ARIA 1.2). */
export function NodePicker({ label, value, none, error = null, autofocus = false, isOffered, onChoose }: Props) {
  const id = useId()
  const typed = useSignal<string | null>(null)
  const active = useSignal(0)
  const wanted = typed.value?.trim().toLowerCase() ?? null
  const found = useFoundNodes(wanted)?.filter((node) => isOffered?.(node) ?? true) ?? null
  const options = [
    ...(wanted === '' && none !== undefined ? [{ nodeId: '', name: none }] : []),
    ...(found ?? []).slice(0, MAX_SHOWN).map((node) => ({ nodeId: node.nodeId, name: nodeName(node) })),
  ]
  const isOpen = wanted !== null
  const choose = (option: { readonly nodeId: string } | undefined) => {
    if (option === undefined) return
    typed.value = null
    onChoose(option.nodeId)
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      typed.value ??= ''
      active.value = Math.max(0, Math.min(options.length - 1, active.value + (isOpen ? step : 0)))
    } else if (event.key === 'Enter' && isOpen) {
      event.preventDefault()
      choose(options[active.value])
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
        aria-activedescendant={isOpen && options.length > 0 ? `${id}-${active.value}` : undefined}
        aria-invalid={error !== null}
        aria-describedby={`${id}-about`}
        placeholder={t.nodes.searchHint}
        value={typed.value ?? (value === '' ? (none ?? '') : nameOfId(value))}
        onFocus={(event) => event.currentTarget.select()}
        onClick={() => (typed.value ??= '')}
        onInput={(event) => {
          typed.value = event.currentTarget.value
          active.value = 0
        }}
        onKeyDown={press}
        onBlur={() => (typed.value = null)}
      />
      <ul id={`${id}-list`} role="listbox" aria-label={t.nodes.found} hidden={!isOpen || options.length === 0}>
        {options.map(({ nodeId, name }, index) => (
          <li
            key={nodeId}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active.value}
            // Before the field loses the focus, which closes the list.
            onPointerDown={(event) => {
              event.preventDefault()
              choose({ nodeId })
            }}
          >
            <span class="clip" dir="auto" title={name}>
              {name}
            </span>{' '}
            <span class="faint mono">{nodeId}</span>
          </li>
        ))}
      </ul>
      <p class="about" id={`${id}-about`} role="status">
        {error === null ? found !== null && say(found.length) : <span class="bad">{error}</span>}
      </p>
    </div>
  )
}

function say(count: number): string {
  if (count === 0) return t.nodes.none
  return count >= MAX_FOUND ? t.nodes.manyMatches(MAX_SHOWN) : t.nodes.matches(count, MAX_SHOWN)
}
