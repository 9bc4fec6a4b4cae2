import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { useAction } from '../../state/load.ts'
import { Select } from '../../parts/form/field.tsx'
import { RangeControl } from '../../parts/form/range-control.tsx'
import { Icon } from '../../parts/icon.tsx'
import { LogTable, More } from '../../parts/list/log-table.tsx'
import { MAX_AT_ONCE } from '../../parts/list/whole-list.tsx'
import { SteadyList } from '../../parts/list/steady-list.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { SearchQuery } from '../../parts/list/search-query.tsx'
import { href, place, setQuery } from '../../router.ts'
import { type Range, rangeKey, rangeQuery, readRange, timesOf } from '../../state/range.ts'
import { useSteady } from '../../state/steady.ts'
import { t } from '../../strings.ts'
import { AUDIT_NAMES, AUDIT_RESOURCES, auditTexts } from '../../strings/system/audit.ts'
import { Chain } from './chain.tsx'
import { type AuditEntry, AuditRow } from './entry.tsx'
import { MAX_SEARCH } from '../../../shared/limits.ts'
import type { ExportFormat } from '../../../shared/access/audit-actions.ts'

const NAMES = ['q', 'action', 'resource', 'userId'] as const
const PAGE = 100
/** The maximum length of an action or an area. */
const MAX_NAME = 100

/** The address's filters as API parameters, without its range. */
function filtersOf(query: URLSearchParams): Partial<Record<(typeof NAMES)[number], string>> {
  const found: Partial<Record<(typeof NAMES)[number], string>> = {}
  for (const name of NAMES) {
    const value = query.get(name)?.trim() ?? ''
    if (value === '') continue
    if (name !== 'userId') found[name] = value.slice(0, name === 'q' ? MAX_SEARCH : MAX_NAME)
    else if (/^[1-9]\d{0,14}$/.test(value)) found[name] = value
  }
  return found
}

/** The range as API parameters, whose end belongs to it. */
function timesAsked(range: Range | null): { readonly from?: string; readonly to?: string } {
  const { since, until } = timesOf(range)
  return {
    ...(since !== undefined && { from: since }),
    ...(until !== undefined && { to: String(Number(until) - 1) }),
  }
}

export function AuditPage() {
  const { query } = place.value
  const filters = filtersOf(query)
  const { range } = readRange<Range | null>(query, null)
  const key = JSON.stringify([filters, rangeKey(range)])
  const entries = useSignal<readonly AuditEntry[] | null>(null)
  const next = useSignal<number | null>(null)
  /** The filters for which these entries were loaded. */
  const loaded = useSignal(key)
  const turn = useRef(0)
  const { busy, error, run } = useAction()
  const load = async (cursor: number | null, limit = PAGE) => {
    const mine = ++turn.current
    const page = await ask(
      api.audit.$get({
        query: {
          ...filters,
          ...timesAsked(range),
          limit: String(limit),
          ...(cursor !== null && { cursor: String(cursor) }),
        },
      }),
    )
    if (mine !== turn.current) return
    entries.value = cursor === null ? page.entries : [...(entries.value ?? []), ...page.entries]
    next.value = page.nextCursor
    loaded.value = key
  }
  useEffect(() => {
    busy.value = false
    void run(() => load(null))
  }, [key])
  const exported = (format: ExportFormat) =>
    href(`/api/audit/export?${new URLSearchParams({ format, ...filters, ...timesAsked(range) }).toString()}`)
  const steady = useSteady('audit', entries.value ?? [], idOf, loaded.value)
  return (
    <Page
      title={auditTexts.title}
      actions={
        <>
          <a class="button" href={exported('csv')} download>
            {t.common.exportAs} {t.common.csv}
          </a>
          <a class="button" href={exported('ndjson')} download>
            {t.common.exportAs} {auditTexts.ndjson}
          </a>
        </>
      }
    >
      <Chain />
      <Filters query={query} hasAny={range !== null || Object.keys(filters).length > 0} entries={entries.value ?? []} />
      <Failure error={error.value} retry={() => void run(() => load(null))} />
      {entries.value?.length === 0 && next.value === null && <p class="faint">{auditTexts.none}</p>}
      {steady.rows.length > 0 && (
        <SteadyList steady={steady}>
          <AuditTable entries={steady.rows} />
        </SteadyList>
      )}
      <More
        next={next.value}
        isBusy={busy.value}
        onMore={(cursor) => void run(() => load(cursor))}
        loadNext={async () => {
          await load(next.peek(), MAX_AT_ONCE)
          return next.peek() !== null
        }}
      />
    </Page>
  )
}

const idOf = ({ id }: AuditEntry) => id

function Filters({
  query,
  hasAny,
  entries,
}: {
  query: URLSearchParams
  hasAny: boolean
  entries: readonly AuditEntry[]
}) {
  const userId = query.get('userId')
  const name = entries.find((entry) => String(entry.userId) === userId)?.username
  const all = ['', t.common.all] as const
  const actions = Object.entries(AUDIT_NAMES).toSorted(([, a], [, b]) => a.localeCompare(b))
  return (
    <div class="toolbar">
      <SearchQuery label={auditTexts.searchLabel} hint={auditTexts.searchHint} />
      <Select
        label={auditTexts.action}
        value={query.get('action') ?? ''}
        options={[all, ...actions]}
        onChange={(action) => setQuery({ action })}
      />
      <Select
        label={auditTexts.resource}
        value={query.get('resource') ?? ''}
        options={[all, ...Object.entries(AUDIT_RESOURCES)]}
        onChange={(resource) => setQuery({ resource })}
      />
      <RangeControl fallback={null} />
      {userId !== null && (
        <button type="button" class="button" onClick={() => setQuery({ userId: '' })}>
          {auditTexts.onlyUser(name ?? userId)} <Icon name="close" />
        </button>
      )}
      {hasAny && (
        <button
          type="button"
          class="button"
          onClick={() => setQuery({ ...rangeQuery(null), ...Object.fromEntries(NAMES.map((name) => [name, ''])) })}
        >
          {t.common.clear}
        </button>
      )}
    </div>
  )
}

function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <LogTable
      headings={[
        { name: t.common.when },
        { name: auditTexts.who },
        { name: auditTexts.what },
        { name: auditTexts.address, wideOnly: true },
      ]}
    >
      {entries.map((entry) => (
        <AuditRow entry={entry} key={entry.id} />
      ))}
    </LogTable>
  )
}
