import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { Field } from '../../parts/form/field.tsx'
import { FiltersButton } from '../../parts/list/filters-button.tsx'
import { NodePicker } from '../../parts/form/node-picker.tsx'
import { setQuery } from '../../router.ts'
import type { Wanted } from '../../state/messages/conversation.ts'
import { can } from '../../state/session.ts'
import { t } from '../../strings.ts'

/** Searches for messages of one sender and of some days. */
export function SearchFilters({ wanted: { from, since, until } }: { wanted: Wanted }) {
  const used = [from ?? '', since, until].filter((value) => value !== '').length
  const isOpen = useSignal(used > 0)
  const id = useId()
  return (
    <>
      <FiltersButton isOpen={isOpen} controls={id} used={used} />
      <div id={id} class="toolbar search-filters" hidden={!isOpen.value}>
        {can('nodes', 'read') && (
          <NodePicker label={t.messages.sender} value={from ?? ''} onChoose={(nodeId) => setQuery({ from: nodeId })} />
        )}
        <Field
          label={t.messages.since}
          type="date"
          value={since}
          onChange={(event) => setQuery({ since: event.currentTarget.value })}
        />
        <Field
          label={t.messages.until}
          type="date"
          value={until}
          onChange={(event) => setQuery({ until: event.currentTarget.value })}
        />
        {used > 0 && (
          <button type="button" class="button" onClick={() => setQuery({ from: '', since: '', until: '' })}>
            {t.common.clear}
          </button>
        )}
      </div>
    </>
  )
}
