import { useSignal } from '@preact/signals'
import { isRecord } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Actions, Field, formText, Select } from '../../parts/form/field.tsx'
import { navigate, place } from '../../router.ts'
import { preference, readList } from '../../state/preferences.ts'
import { t } from '../../strings.ts'
import { nodesWith } from './filters.tsx'

/** Filters and sorting of the list under a name. `query` is in the form of the address. */
type View = { readonly name: string; readonly query: string }

const isView = (item: unknown): item is View =>
  isRecord(item) && typeof item['name'] === 'string' && typeof item['query'] === 'string'

const saved = preference<readonly View[]>('node-views', [], (found) => readList(found, isView))

const MAX_NAME = 40
const MAX_VIEWS = 30

/** Views that every user needs. */
const COMMON: readonly View[] = [
  [t.nodes.views.silent, { silent: 'inactive', heard: '604800' }] as const,
  [t.nodes.views.battery, { battery: '20', sort: 'battery', order: 'up' }] as const,
  [t.nodes.views.weak, { show: 'active', signal: 'weak' }] as const,
].map(([name, filters]) => ({ name, query: nodesWith(filters).slice('/nodes?'.length) }))

/** All views, and the one that is open. */
function readViews() {
  const query = place.value.query.toString()
  const all = [...COMMON, ...saved.value.value]
  return { query, all, open: all.find((view) => isSame(view.query, query)) }
}

/** Saves the filters and the order of the list as a view, unless they are one. */
export function SaveView() {
  const isNaming = useSignal(false)
  const { query, open } = readViews()
  if (open !== undefined || query === '' || saved.value.value.length >= MAX_VIEWS) return null
  return (
    <>
      <button type="button" class="button" onClick={() => (isNaming.value = true)}>
        {t.nodes.saveView}
      </button>
      {isNaming.value && <Naming query={query} onClose={() => (isNaming.value = false)} />}
    </>
  )
}

/** Chooses and deletes views of the list. */
export function Views() {
  const { query, all, open } = readViews()
  return (
    <>
      <Select
        label={t.nodes.view}
        value={open?.query ?? ''}
        options={[['', t.nodes.views.none] as const, ...all.map((view) => [view.query, view.name] as const)]}
        onChange={(next) => navigate(next === '' ? '/nodes' : `/nodes?${next}`, { replace: true })}
      />
      {query === '' && <span class="faint">{t.nodes.viewsHelp}</span>}
      {open !== undefined && !COMMON.includes(open) && (
        <button
          type="button"
          class="button"
          onClick={() => saved.keep(saved.value.value.filter((view) => view !== open))}
        >
          {t.nodes.deleteView}
        </button>
      )}
    </>
  )
}

function Naming({ query, onClose }: { query: string; onClose(): void }) {
  return (
    <Dialog title={t.nodes.saveView} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const name = formText(event.currentTarget)('name').trim()
          if (name === '') return
          // A name stands for one view: the later one replaces the earlier.
          saved.keep([...saved.value.value.filter((view) => view.name !== name), { name, query }])
          onClose()
        }}
      >
        <Field label={t.nodes.viewName} hint={t.nodes.viewHint} name="name" maxLength={MAX_NAME} required autofocus />
        <Actions>
          <button class="button primary">{t.common.save}</button>
        </Actions>
      </form>
    </Dialog>
  )
}

/** The same parameters in any order. */
function isSame(a: string, b: string): boolean {
  const sorted = (query: string) => {
    const params = new URLSearchParams(query)
    params.sort()
    return params.toString()
  }
  return sorted(a) === sorted(b)
}
