import type { InferResponseType } from 'hono/client'
import { type api, isRecord } from '../../api.ts'
import { humanize, plain } from '../../format.ts'
import { LogRow, RawFacts } from '../../parts/list/log-table.tsx'
import { setQuery } from '../../router.ts'
import { t } from '../../strings.ts'
import { AUDIT_NAMES, auditTexts } from '../../strings/system/audit.ts'
import { inWords, isGrant, nameOf, scopeInWords } from './in-words.ts'

export type AuditEntry = InferResponseType<typeof api.audit.$get>['entries'][number]

const BAD: ReadonlySet<string> = new Set(['login_failed', 'oidc_login_failed', 'backup_failed', 'backup_copy_failed'])

/** One entry: a line, and all details once it is opened. */
export function AuditRow({ entry }: { entry: AuditEntry }) {
  const names: Readonly<Record<string, string | undefined>> = AUDIT_NAMES
  const subject = subjectOf(entry)
  return (
    <LogRow at={entry.timestamp} span={3} wideSpan={1} details={() => <Details entry={entry} />}>
      <td>
        {entry.userId === null ? (
          actorWithoutAccount(entry)
        ) : (
          <button type="button" class="text-button" onClick={() => setQuery({ userId: String(entry.userId) })}>
            {plain(entry.username ?? '')}
          </button>
        )}
      </td>
      <td class={BAD.has(entry.action) ? 'bad' : ''}>
        {names[entry.action] ?? humanize(entry.action)}
        {subject !== null && <span class="faint"> {subject}</span>}
      </td>
      <td class="wide-only mono">{entry.ip ?? t.common.none}</td>
    </LogRow>
  )
}

function actorWithoutAccount({ username }: AuditEntry): string {
  return username === 'system' ? auditTexts.system : (username ?? auditTexts.nobody)
}

/** The subject of an action, if it is not the actor. */
function subjectOf({ details, username }: AuditEntry): string | null {
  const subject = details['username'] ?? details['name'] ?? details['nodeId']
  return typeof subject === 'string' && subject !== username ? subject : null
}

function Details({ entry }: { entry: AuditEntry }) {
  const { before, after, ...rest } = entry.details
  const facts = [
    ...Object.entries(rest).map(([name, value]) => [name, show(name, value)] as const),
    ['ip', entry.ip ?? t.common.none] as const,
    [auditTexts.request, entry.requestId ?? t.common.none] as const,
  ]
  return (
    <div class="stack">
      {(isRecord(before) || isRecord(after)) && (
        <Changes before={isRecord(before) ? before : {}} after={isRecord(after) ? after : {}} />
      )}
      <RawFacts facts={facts} />
    </div>
  )
}

type Fields = Readonly<Record<string, unknown>>

function Changes({ before, after }: { before: Fields; after: Fields }) {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return (
    <table class="changes">
      <thead>
        <tr>
          <th scope="col">{auditTexts.field}</th>
          <th scope="col">{auditTexts.before}</th>
          <th scope="col">{auditTexts.after}</th>
        </tr>
      </thead>
      <tbody>
        {fields.map((field) => (
          <tr key={field}>
            <th scope="row">{isGrant(after[field] ?? before[field]) ? (nameOf(field) ?? field) : field}</th>
            <td>
              <del>{show(field, before[field])}</del>
            </td>
            <td>
              <ins>{show(field, after[field])}</ins>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function show(field: string, value: unknown): string {
  return field === 'scopes' && Array.isArray(value) ? value.map(scopeInWords).join('; ') : inWords(value)
}
