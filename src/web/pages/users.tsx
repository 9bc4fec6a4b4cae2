import { useComputed, useSignal } from '@preact/signals'
import { api, ask } from '../api.ts'
import { date } from '../format.ts'
import { useLoad } from '../load.ts'
import { Age } from '../parts/age.tsx'
import { Icon } from '../parts/icon.tsx'
import { Failure } from '../parts/notice.tsx'
import { Page } from '../parts/page.tsx'
import { SearchQuery } from '../parts/search-query.tsx'
import { href, place } from '../router.ts'
import { status, type User, user } from '../session.ts'
import { t } from '../strings.ts'

const PAGE_SIZE = 100

export function UsersPage() {
  const q = place.value.query.get('q') ?? ''
  const limit = useSignal(PAGE_SIZE)
  const { data, error, reload } = useLoad(
    () => ask(api.users.$get({ query: { ...(q !== '' && { q }), limit: String(limit.value) } })),
    [q, limit.value],
  )
  const found = data.value
  const hasMore = useComputed(() => (data.value?.users.length ?? 0) < Math.min(500, data.value?.total ?? 0))
  return (
    <Page
      title={t.users.title}
      actions={
        !status.value?.localAuthDisabled && (
          <a class="button primary" href={href('/users/new')}>
            <Icon name="plus" />
            {t.users.new}
          </a>
        )
      }
    >
      {status.value?.localAuthDisabled && <p class="faint measure">{t.users.localDisabled}</p>}
      <div class="toolbar">
        <SearchQuery label={t.users.searchLabel} hint={t.users.searchHint} />
        <span class="faint" role="status">
          {found !== null && t.users.shown(found.users.length, found.total)}
        </span>
      </div>
      <Failure error={error.value} retry={reload} />
      {found?.users.length === 0 && <p class="faint">{t.users.none}</p>}
      {found !== null && found.users.length > 0 && <UserTable users={found.users} />}
      {hasMore.value && (
        <button type="button" class="button" onClick={() => (limit.value = Math.min(500, limit.value + PAGE_SIZE))}>
          {t.common.more}
        </button>
      )}
    </Page>
  )
}

function UserTable({ users }: { users: readonly User[] }) {
  return (
    <div class="table-box">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{t.users.user}</th>
            <th scope="col">{t.users.role}</th>
            <th scope="col" class="wide-only">
              {t.users.provider}
            </th>
            <th scope="col" class="phone-hidden">
              {t.users.lastLogin}
            </th>
            <th scope="col" class="wide-only">
              {t.users.created}
            </th>
          </tr>
        </thead>
        <tbody>
          {users.map((row) => (
            <tr key={row.id} class={row.isActive ? '' : 'off'}>
              <th scope="row">
                <a class="row-link" href={href(`/users/${row.id}`)}>
                  {row.displayName ?? row.username}
                </a>
                {row.id === user.value?.id && <span class="tag">{t.users.itIsYou}</span>}
                <div class="faint break">
                  {[row.displayName && row.username, row.email].filter(Boolean).join(' · ')}
                </div>
              </th>
              <td>
                {row.isActive ? (
                  <span class={row.isAdmin ? 'tag accent' : 'tag'}>
                    {row.isAdmin ? t.users.admin : t.users.regular}
                  </span>
                ) : (
                  <span class="tag bad">{t.users.inactive}</span>
                )}
              </td>
              <td class="wide-only">{t.users.providers[row.authProvider]}</td>
              <td class="phone-hidden">
                <Age at={row.lastLoginAt} />
              </td>
              <td class="wide-only">{date(row.createdAt)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
