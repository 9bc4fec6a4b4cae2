import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { RangeControl } from '../../parts/form/range-control.tsx'
import { FiltersButton } from '../../parts/list/filters-button.tsx'
import { NodePicker } from '../../parts/form/node-picker.tsx'
import { place, queryNode, setQuery } from '../../router.ts'
import type { Wanted } from '../../state/messages/conversation.ts'
import { rangeQuery } from '../../state/range.ts'
import { can } from '../../state/session.ts'
import { t } from '../../strings.ts'

/** Searches for messages of one sender and of a time. */
export function SearchFilters({ wanted: { from, range } }: { wanted: Wanted }) {
  const used = [from, range].filter((value) => value !== null).length
  const isOpen = useSignal(used > 0)
  const id = useId()
  // In older addresses, the sender has the name of a time.
  const choose = (node: string) =>
    setQuery({ node, ...(queryNode(place.peek().query, 'from') !== null && { from: '' }) })
  return (
    <>
      <FiltersButton isOpen={isOpen} controls={id} used={used} />
      <div id={id} class="toolbar search-filters" hidden={!isOpen.value}>
        {can('nodes', 'read') && <NodePicker label={t.messages.sender} value={from ?? ''} onChoose={choose} />}
        <RangeControl fallback={null} />
        {used > 0 && (
          <button type="button" class="button" onClick={() => setQuery({ ...rangeQuery(null), node: '' })}>
            {t.common.clear}
          </button>
        )}
      </div>
    </>
  )
}
