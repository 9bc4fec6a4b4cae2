import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Dialog } from '../../parts/dialog.tsx'
import { useFoundNodes } from '../../state/mesh/find-nodes.ts'
import { type Node, nodes, useNodes } from '../../state/mesh/nodes.ts'
import { useFoundTexts } from '../../state/messages/find-texts.ts'
import { can, isAnonymous } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { type Found, find } from './found.ts'

/** Finds pages, nodes, actions and settings by their names, in spite of typing errors, and texts by a part of them. */
export function Finder({ onClose }: { onClose(): void }) {
  const id = useId()
  const typed = useSignal('')
  /** The chosen one; while it is not among those that are found, the first is. */
  const chosen = useSignal<string | null>(null)
  const wanted = typed.value.trim()
  const heard = useHeard(wanted)
  // People without an account have no search of texts.
  const { texts, isBusy } = useFoundTexts(can('messages', 'read') && !isAnonymous.value ? wanted : null)
  const found = find(wanted, heard.nodes, texts)
  const active = Math.max(
    0,
    found.findIndex(({ key }) => key === chosen.value),
  )
  const list = useRef<HTMLUListElement>(null)
  const activeKey = found[active]?.key
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' })
  }, [activeKey])
  const run = (one: Found | undefined) => {
    if (one === undefined) return
    onClose()
    one.run()
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      chosen.value = found[Math.max(0, Math.min(found.length - 1, active + step))]?.key ?? null
    } else if (event.key === 'Enter') {
      event.preventDefault()
      run(found[active])
    }
  }
  return (
    <Dialog title={t.finder.open} onClose={onClose}>
      <input
        role="combobox"
        autoFocus
        autocomplete="off"
        aria-label={t.finder.label}
        placeholder={t.finder.hint}
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length > 0 ? `${id}-${active}` : undefined}
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value
          chosen.value = null
        }}
        onKeyDown={press}
      />
      <ul ref={list} id={id} class="finder" role="listbox" aria-label={t.finder.open}>
        {found.map((one, index) => (
          <li
            key={one.key}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active}
            onClick={() => run(one)}
          >
            <span class="clip" dir="auto" title={one.name}>
              {one.name}
            </span>{' '}
            <span class="faint clip">{one.kind}</span>
          </li>
        ))}
      </ul>
      <p class="faint" role="status">
        {found.length === 0 && heard.isMissed !== null && !isBusy && t.finder.none}
      </p>
      {heard.isMissed === true && wanted.length >= MIN_SIMILAR && <AllNodes />}
    </Dialog>
  )
}

/** From so many letters on, names of nodes may be meant that are written in another way. */
const MIN_SIMILAR = 4

/** The service finds no names with typing errors; this page does, in the whole list. */
function AllNodes(): null {
  useNodes()
  return null
}

type Heard = {
  /** All that are known here and those that the service found, whether they fit or not. */
  readonly nodes: readonly Node[]
  /** No name contains what was typed; null: no answer yet. */
  readonly isMissed: boolean | null
}

function useHeard(wanted: string): Heard {
  const isOn = wanted !== '' && can('nodes', 'read')
  const found = useFoundNodes(isOn ? wanted.toLowerCase() : null)
  const last = useRef<readonly Node[]>([])
  if (found !== null) last.current = found
  if (!isOn) return { nodes: [], isMissed: false }
  // Those found last may still fit while typing goes on.
  const all = new Map([...last.current, ...(nodes.value ?? [])].map((node) => [node.nodeNum, node]))
  return { nodes: [...all.values()], isMissed: found === null ? null : found.length === 0 }
}
