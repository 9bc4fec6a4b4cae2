import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { online } from '../api.ts'
import { useAction } from '../load.ts'
import { mayOpen, type Route, ROUTES } from '../pages/routes.tsx'
import { href, place } from '../router.ts'
import { can, refreshStatus, signOut, user } from '../session.ts'
import { APP_NAME, t } from '../strings.ts'
import { Icon } from './icon.tsx'
import { LinkState } from './link-state.tsx'
import { Failure } from './notice.tsx'

type Entry = NonNullable<Route['nav']>

function entries(): Entry[] {
  return ROUTES.flatMap(({ nav, need }) => (nav !== undefined && mayOpen(need) ? [nav] : []))
}

const RETRY_MS = 3000

/** What surrounds every page once somebody is signed in. */
export function Shell({ children }: { children: ComponentChildren }) {
  return (
    <div class="shell">
      <a class="skip" href="#content">
        {t.shell.skip}
      </a>
      <Sidebar />
      <div class="main">
        <Connection />
        <main id="content" tabIndex={-1}>
          {children}
        </main>
      </div>
      <TabBar />
    </div>
  )
}

function Sidebar() {
  const all = entries()
  return (
    <nav class="sidebar" aria-label={t.shell.navigation}>
      <a class="brand" href={href('/')}>
        <Logo />
        {APP_NAME}
      </a>
      {can('info', 'read') && <LinkState />}
      <NavGroup entries={all.filter(({ group }) => group === 'mesh')} />
      <NavGroup entries={all.filter(({ group }) => group === 'administration')} title={t.shell.administration} />
      <div class="grow" />
      <NavLink
        entry={{
          path: '/account',
          name: user.value?.displayName ?? user.value?.username ?? '',
          icon: 'account',
          group: 'mesh',
        }}
      />
      <SignOut />
    </nav>
  )
}

function NavGroup({ entries, title }: { entries: readonly Entry[]; title?: string }) {
  if (entries.length === 0) return null
  return (
    <>
      {title !== undefined && <div class="nav-title">{title}</div>}
      <ul>
        {entries.map((entry) => (
          <li key={entry.path}>
            <NavLink entry={entry} />
          </li>
        ))}
      </ul>
    </>
  )
}

function isHere(path: string): boolean {
  const here = place.value.path
  return path === '/' ? here === '/' : here === path || here.startsWith(`${path}/`)
}

function NavLink({ entry }: { entry: Entry }) {
  return (
    <a class="nav-link" href={href(entry.path)} aria-current={isHere(entry.path) ? 'page' : undefined}>
      <Icon name={entry.icon} />
      <span>{entry.name}</span>
    </a>
  )
}

function SignOut() {
  const action = useAction()
  return (
    <>
      <button type="button" class="nav-link" onClick={() => void action.run(signOut)}>
        <Icon name="signOut" />
        <span>{t.shell.signOut}</span>
      </button>
      <Failure error={action.error.value} />
    </>
  )
}

/** The navigation of a phone: the first pages, and the rest behind a button. */
function TabBar() {
  const all = entries()
  const isOpen = useSignal(false)
  const here = place.value
  useEffect(() => {
    isOpen.value = false
  }, [here])
  return (
    <nav class="tabbar" aria-label={t.shell.navigation}>
      {isOpen.value && (
        <div
          class="sheet"
          onKeyDown={(event) => {
            if (event.key === 'Escape') isOpen.value = false
          }}
        >
          {can('info', 'read') && <LinkState />}
          {all.slice(4).map((entry) => (
            <NavLink entry={entry} key={entry.path} />
          ))}
          <NavLink entry={{ path: '/account', name: t.nav.account, icon: 'account', group: 'mesh' }} />
          <SignOut />
        </div>
      )}
      {all.slice(0, 4).map((entry) => (
        <a class="tab" key={entry.path} href={href(entry.path)} aria-current={isHere(entry.path) ? 'page' : undefined}>
          <Icon name={entry.icon} />
          {entry.name}
        </a>
      ))}
      <button type="button" class="tab" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        <Icon name="menu" />
        {t.shell.menu}
      </button>
    </nav>
  )
}

/** Says when the service is away, and tries again until it is back. */
function Connection() {
  useEffect(() => {
    if (online.value) return
    const timer = setInterval(() => void refreshStatus(), RETRY_MS)
    return () => clearInterval(timer)
  }, [online.value])
  return (
    <div role="status">
      {!online.value && (
        <div class="offline">
          <Icon name="warning" />
          {navigator.onLine ? t.shell.offline : t.shell.offlineBrowser}
        </div>
      )}
    </div>
  )
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M9 22 16 9l7 13Z" />
      <circle cx="16" cy="9" r="3.4" />
      <circle cx="9" cy="22" r="3.4" />
      <circle cx="23" cy="22" r="3.4" />
    </svg>
  )
}
