import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { MAX_SEARCH } from '../../../shared/limits.ts'
import { MESSAGE_TRAITS } from '../../../shared/mesh/message-traits.ts'
import { Icon } from '../../parts/icon.tsx'
import { useQueryText } from '../../parts/list/query-text.ts'
import type { Channels } from '../../state/messages/channels.ts'
import { DIRECT, OPERATORS } from '../../state/messages/terms.ts'
import { useFoundNodes } from '../../state/mesh/find-nodes.ts'
import { type Node, nodeName } from '../../state/mesh/nodes.ts'
import { can } from '../../state/session.ts'
import { t } from '../../strings.ts'

const PAUSE_MS = 300
const MAX_SHOWN = 8

type Suggestion = { readonly text: string; readonly about: string }

/** The search of messages, kept in the address as `q`, with suggestions (a combobox of WAI-ARIA 1.2). */
export function MessageSearch({ channels }: { channels: Channels }) {
  const id = useId()
  const typed = useQueryText(PAUSE_MS)
  const isOpen = useSignal(false)
  const active = useSignal(-1)
  const last = /(?:[a-z]+:"[^"]*|\S*)$/iu.exec(typed.value)?.[0] ?? ''
  const name = /^from:"?(.*)$/iu.exec(last)?.[1]?.toLowerCase() ?? null
  const nodes = useFoundNodes(isOpen.value && can('nodes', 'read') ? name : null)
  const options = isOpen.value ? suggest(last, nodes ?? [], channels).slice(0, MAX_SHOWN) : []
  const type = (text: string) => {
    typed.value = text
    active.value = -1
    isOpen.value = true
  }
  const choose = (option: Suggestion) => {
    const isWhole = !option.text.endsWith(':')
    type(`${typed.peek().slice(0, typed.peek().length - last.length)}${option.text}${isWhole ? ' ' : ''}`)
    if (isWhole) isOpen.value = false
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const chosen = options[active.peek()]
    if (step !== undefined) {
      event.preventDefault()
      if (isOpen.peek()) active.value = Math.max(-1, Math.min(options.length - 1, active.peek() + step))
      isOpen.value = true
    } else if (event.key === 'Enter' && chosen !== undefined) {
      event.preventDefault()
      choose(chosen)
    } else if (event.key === 'Escape' && options.length > 0) {
      event.preventDefault()
      event.stopPropagation()
      isOpen.value = false
    }
  }
  return (
    <div class="search node-picker">
      <label class="sr-only" for={id}>
        {t.messages.searchLabel}
      </label>
      <Icon name="search" />
      <input
        id={id}
        type="search"
        role="combobox"
        list={undefined}
        aria-expanded={options.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={options[active.value] === undefined ? undefined : `${id}-${active.value}`}
        placeholder={t.messages.searchHint}
        value={typed.value}
        maxLength={MAX_SEARCH}
        autocomplete="off"
        spellcheck={false}
        onClick={() => (isOpen.value = true)}
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={press}
        onBlur={() => (isOpen.value = false)}
      />
      <ul id={`${id}-list`} role="listbox" aria-label={t.messages.terms.suggestions} hidden={options.length === 0}>
        {options.map((option, index) => (
          <li
            key={option.text}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active.value}
            // Before the field loses the focus, which closes the list.
            onPointerDown={(event) => {
              event.preventDefault()
              choose(option)
            }}
          >
            <span class="clip" dir="auto">
              {option.text}
            </span>{' '}
            <span class="faint clip">{option.about}</span>
          </li>
        ))}
      </ul>
      <span class="sr-only" role="status">
        {options.length > 0 && t.messages.terms.count(options.length)}
      </span>
    </div>
  )
}

/** What may follow instead of `last`, the term that is being typed. */
function suggest(last: string, nodes: readonly Node[], channels: Channels): Suggestion[] {
  const [, operator = '', value = ''] = /^([a-z]+):"?(.*)$/iu.exec(last) ?? []
  const wanted = value.toLowerCase()
  const named = (texts: readonly (readonly [text: string, about: string])[]) =>
    texts
      .filter(([text, about]) => `${text} ${about}`.toLowerCase().includes(wanted))
      .map(([text, about]) => ({ text: `${operator}:${/\s/.test(text) ? `"${text}"` : text}`, about }))
  switch (operator.toLowerCase()) {
    case '':
      return OPERATORS.filter((one) => one.startsWith(last.toLowerCase())).map((one) => ({
        text: `${one}:`,
        about: t.messages.terms[one],
      }))
    case 'from':
      return nodes.map((node) => {
        const name = nodeName(node)
        const isSure =
          name === node.longName && !name.includes('"') && nodes.every((one) => one === node || nodeName(one) !== name)
        const text = isSure ? name : node.nodeId
        return { text: `${operator}:${/\s/.test(text) ? `"${text}"` : text}`, about: isSure ? node.nodeId : name }
      })
    case 'in':
      return named([
        ...channels.used.map((index) => [nameIn(channels, index), t.messages.channel(index)] as const),
        [DIRECT, t.messages.terms.direct],
      ])
    case 'has':
      return named(MESSAGE_TRAITS.map((trait) => [trait, ''] as const))
    case 'before':
    case 'after':
      return named([
        ['today', ''],
        ['yesterday', ''],
        ['7d', ''],
        ['30d', ''],
      ])
    default:
      return []
  }
}

/** The name that the search knows; the number of a channel without one. */
function nameIn(channels: Channels, index: number): string {
  const name = channels.name(index)
  return name === t.messages.channel(index) || name.includes('"') ? String(index) : name
}
