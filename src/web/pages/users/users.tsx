import './users.css'
import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../api.ts'
import { date, plain } from '../../format.ts'
import { useLoad } from '../../state/load.ts'
import { Age } from '../../parts/age.tsx'
import { Icon } from '../../parts/icon.tsx'
import { More } from '../../parts/list/log-table.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { SearchQuery } from '../../parts/list/search-query.tsx'
import { href, place } from '../../router.ts'
import { status, user, userName } from '../../state/session.ts'
import { factorTexts } from '../../strings/people/factors.ts'
import { userTexts } from '../../strings/people/users.ts'
import { MAX_SEARCH } from '../../../shared/limits.ts'

type Listed = InferResponseType<typeof api.users.$get, 200>['users'][number]

const FIRST_PAGE = 100
/** The maximum in one answer. */
const PAGE = 500

/** The first `wanted` users that match, page by page. */
async function loadUsers(q: string, wanted: number): Promise<{ users: Listed[]; total: number }> {
  const users = new Map<number, Listed>()
  for (let offset = 0; ;) {
    const limit = Math.min(PAGE, wanted - offset)
    const page = await ask(
      api.users.$get({ query: { ...(q !== '' && { q }), limit: String(limit), offset: String(offset) } }),
    )
    // A user created meanwhile shifts others to the next page, so duplicates are removed.
    for (const found of page.users) users.set(found.id, found)
    offset += limit
    if (offset >= wanted || offset >= page.total) return { users: [...users.values()], total: page.total }
  }
}

export function UsersPage() {
  const q = (place.value.query.get('q') ?? '').slice(0, MAX_SEARCH)
  const limit = useSignal(FIRST_PAGE)
  const { data, error, busy, reload } = useLoad(() => loadUsers(q, limit.value), [q, limit.value])
  const found = data.value
  return (
    <Page
      title={userTexts.title}
      actions={
        (!status.value?.localAuthDisabled || status.value.oidcEnabled) && (
          <a class="button primary" href={href('/users/new')}>
            <Icon name="plus" />
            {userTexts.new}
          </a>
        )
      }
    >
      {status.value?.localAuthDisabled && <p class="faint measure">{userTexts.localDisabled}</p>}
      <div class="toolbar">
        <SearchQuery label={userTexts.searchLabel} hint={userTexts.searchHint} />
        <span class="faint" role="status">
          {found !== null && userTexts.shown(found.users.length, found.total)}
        </span>
      </div>
      <Failure error={error.value} retry={reload} />
      {found?.users.length === 0 && <p class="faint">{userTexts.none}</p>}
      {found !== null && found.users.length > 0 && <UserTable users={found.users} />}
      {found !== null && found.total > limit.value && (
        <More next={limit.value + PAGE} isBusy={busy.value} onMore={(next) => (limit.value = next)} />
      )}
    </Page>
  )
}

function UserTable({ users }: { users: readonly Listed[] }) {
  return (
    <div class="table-box">
      <table class="table users">
        <thead>
          <tr>
            <th scope="col">{userTexts.user}</th>
            <th scope="col">{userTexts.role}</th>
            <th scope="col" class="wide-only">
              {userTexts.provider}
            </th>
            <th scope="col" class="phone-hidden">
              {userTexts.lastLogin}
            </th>
            <th scope="col" class="wide-only">
              {userTexts.created}
            </th>
          </tr>
        </thead>
        <tbody>
          {users.map((row) => (
            <tr key={row.id} class={row.isActive ? '' : 'off'}>
              <th scope="row">
                <a class="row-link" href={href(`/users/${row.id}`)}>
                  {userName(row)}
                </a>
                {row.id === user.value?.id && <span class="tag">{userTexts.itIsYou}</span>}
                <div class="faint break">
                  {[row.displayName && plain(row.username), row.email].filter(Boolean).join(' · ')}
                </div>
              </th>
              <td>
                {row.isActive ? (
                  <span class={row.isAdmin ? 'tag accent' : 'tag'}>
                    {row.isAdmin ? userTexts.admin : userTexts.regular}
                  </span>
                ) : (
                  <span class="tag bad">{userTexts.inactive}</span>
                )}{' '}
                {row.secondFactor.length > 0 && (
                  <span class="tag good" title={row.secondFactor.map((factor) => factorTexts[factor]).join(', ')}>
                    {factorTexts.title}
                  </span>
                )}
              </td>
              <td class="wide-only">{userTexts.providers[row.authProvider]}</td>
              <td class="phone-hidden">
                <Age at={row.lastLoginAt} />
              </td>
              <td class="wide-only nowrap">{date(row.createdAt)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
