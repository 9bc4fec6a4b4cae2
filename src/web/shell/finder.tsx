import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { mayOpen, ROUTES } from '../pages/routes.tsx'
import { navigate } from '../router.ts'
import { useFoundNodes } from '../state/mesh/find-nodes.ts'
import { type Node, nodeName } from '../state/mesh/nodes.ts'
import { can, has } from '../state/session.ts'
import { startWall } from '../state/wall.ts'
import { t } from '../strings.ts'
import { theme } from '../theme.ts'
import { Dialog } from '../parts/dialog.tsx'

type Found = { readonly name: string; readonly kind: string; run(): void }

const MAX_SHOWN = 12

/** Finds pages, nodes and actions by part of their names. */
export function Finder({ onClose }: { onClose(): void }) {
  const id = useId()
  const typed = useSignal('')
  const active = useSignal(0)
  const wanted = typed.value.trim().toLowerCase()
  const nodes = useFoundNodes(wanted === '' || !can('nodes', 'read') ? null : wanted)
  const found = find(wanted, nodes ?? [])
  const run = (one: Found | undefined) => {
    if (one === undefined) return
    onClose()
    one.run()
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      active.value = Math.max(0, Math.min(found.length - 1, active.value + step))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      run(found[active.value])
    }
  }
  return (
    <Dialog title={t.finder.title} onClose={onClose}>
      <input
        role="combobox"
        autoFocus
        autocomplete="off"
        aria-label={t.finder.label}
        placeholder={t.finder.hint}
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length > 0 ? `${id}-${active.value}` : undefined}
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value
          active.value = 0
        }}
        onKeyDown={press}
      />
      <ul id={id} class="finder" role="listbox" aria-label={t.finder.title}>
        {found.map((one, index) => (
          <li
            key={`${one.kind} ${one.name} ${index}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === active.value}
            onClick={() => run(one)}
          >
            <span class="clip" dir="auto" title={one.name}>
              {one.name}
            </span>{' '}
            <span class="faint">{one.kind}</span>
          </li>
        ))}
      </ul>
      <p class="faint" role="status">
        {found.length === 0 && t.finder.none}
      </p>
    </Dialog>
  )
}

function find(wanted: string, nodes: readonly Node[]): readonly Found[] {
  const pages = ROUTES.flatMap(({ nav, need }) =>
    nav !== undefined && mayOpen(need) ? { name: nav.name, kind: t.finder.page, run: () => navigate(nav.path) } : [],
  )
  const near = [...pages, { name: t.nav.account, kind: t.finder.page, run: () => navigate('/account') }, ...actions()]
  const named = near.filter(({ name }) => name.toLowerCase().includes(wanted))
  const heard = nodes.slice(0, MAX_SHOWN).map((node) => ({
    name: nodeName(node),
    kind: t.finder.node,
    run: () => navigate(`/nodes/${node.nodeId}`),
  }))
  return [...named, ...heard].slice(0, MAX_SHOWN)
}

function actions(): readonly Found[] {
  const act = (name: string, run: () => void): Found => ({ name, kind: t.finder.action, run })
  return [
    ...(can('dashboard', 'read') ? [act(t.finder.wall, startWall)] : []),
    ...(can('messages', 'write') && has('radio') ? [act(t.finder.write, () => navigate('/messages'))] : []),
    ...(can('info', 'write') && has('radio') ? [act(t.finder.trace, () => navigate('/traceroutes'))] : []),
    ...(can('automation', 'write') ? [act(t.finder.rule, () => navigate('/automation/new'))] : []),
    act(t.finder.light, () => (theme.value = 'light')),
    act(t.finder.dark, () => (theme.value = 'dark')),
  ]
}
