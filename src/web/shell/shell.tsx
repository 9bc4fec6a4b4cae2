import { useSignal } from '@preact/signals'
import type { ComponentChildren, FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { firing, FiringKeeper } from '../state/firing.ts'
import { InboxKeeper, unreadTotal } from '../state/messages/inbox.ts'
import { InfoKeeper } from '../state/mesh/links.ts'
import { useAction } from '../state/load.ts'
import { NodeKeeper } from '../state/mesh/nodes.ts'
import { navOf, type Route, ROUTES, warmPages } from '../pages/routes.tsx'
import { seeAs, type SeeingAs, seeingAs } from '../api.ts'
import { currentUrl, href, place } from '../router.ts'
import { can, isAdmin, isAnonymous, signOut, user, userName, siteName } from '../state/session.ts'
import { clock } from '../format.ts'
import { keepFiles } from '../state/files.ts'
import { isWall, keepWall, startWall } from '../state/wall.ts'
import { t } from '../strings.ts'
import { Troubles } from './troubles.tsx'
import { now } from '../parts/age.tsx'
import { Icon } from '../parts/icon.tsx'
import { lazyPage } from '../parts/list/lazy-page.tsx'
import { LinkState, LiveMark } from './link-state.tsx'
import { Failure } from '../parts/notice.tsx'
import { Progress } from './progress.tsx'
import { AuditDamageNotice } from './audit-damage.tsx'
import { DestinationsNotice } from './destinations-notice.tsx'
import { RestoredAccessNotice } from './restored-access.tsx'
import { Logo } from '../parts/alone.tsx'
import { Unread } from '../parts/unread.tsx'

const Finder = lazyPage(async () => (await import('./finder/finder.tsx')).Finder)

type Entry = NonNullable<Route['nav']>

function entries(): Entry[] {
  return ROUTES.flatMap((route) => navOf(route) ?? [])
}

/** The frame of every page, for signed-in users and for people without an account. */
export function Shell({ children }: { children: ComponentChildren }) {
  useEffect(warmPages, [])
  useEffect(keepFiles, [])
  useEffect(() => {
    if (place.peek().query.get('wall') === '1') startWall()
  }, [])
  useEffect(() => (isWall.value ? keepWall() : undefined), [isWall.value])
  const isFinding = useSignal(false)
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return
      event.preventDefault()
      isFinding.value = true
    }
    addEventListener('keydown', open)
    return () => removeEventListener('keydown', open)
  }, [])
  return (
    <div class="shell">
      <a class="skip" href="#content">
        {t.shell.skip}
      </a>
      <NodeKeeper />
      {can('messages', 'read') && !isAnonymous.value && <InboxKeeper />}
      {!isAnonymous.value && <FiringKeeper />}
      {can('info', 'read') && !isAnonymous.value && <InfoKeeper />}
      <Sidebar onFind={() => (isFinding.value = true)} />
      <TabBar onFind={() => (isFinding.value = true)} />
      <div class="main">
        <Progress />
        {seeingAs !== null && <SeeingAsBar {...seeingAs} />}
        <div class="scroller">
          {isAdmin.value && <AuditDamageNotice />}
          {isAdmin.value && <RestoredAccessNotice />}
          {seeingAs === null && <DestinationsNotice />}
          <main id="content" tabIndex={-1}>
            {isWall.value && (
              <div class="wall-states">
                {firing.value > 0 && <strong class="wall-firing">{t.shell.alertsFiring(firing.value)}</strong>}
                <States />
                <strong>{clock(now.value)}</strong>
              </div>
            )}
            {children}
          </main>
        </div>
        <Install />
        <Troubles />
      </div>
      {isFinding.value && <Finder onClose={() => (isFinding.value = false)} />}
      {isWall.value && (
        <button type="button" class="button small wall-leave" onClick={() => (isWall.value = false)}>
          {t.finder.leaveWall}
        </button>
      )}
    </div>
  )
}

/** The hint that these pages can be installed, on those that people open first; without its code, there is none. */
function Install() {
  const hint = useSignal<{ readonly Hint: FunctionComponent } | null>(null)
  const { path } = place.value
  const isFirst = !isAnonymous.value && (path === '/' || path === '/alerts')
  useEffect(() => {
    const load = async () => (hint.value = { Hint: (await import('./install-hint.tsx')).InstallHint })
    if (isFirst) load().catch(() => {})
  }, [isFirst])
  return hint.value === null || !isFirst || isWall.value ? null : <hint.value.Hint />
}

function Sidebar({ onFind }: { onFind(): void }) {
  const all = entries()
  return (
    <nav class="sidebar" aria-label={t.shell.navigation}>
      <a class="brand" href={href('/')}>
        <Logo />
        {siteName.value}
      </a>
      <States />
      <button type="button" class="nav-link" onClick={onFind}>
        <Icon name="search" />
        <span>{t.finder.open}</span>
        <kbd>Ctrl K</kbd>
      </button>
      <NavGroup entries={all.filter(({ group }) => group === 'mesh')} />
      <NavGroup entries={all.filter(({ group }) => group === 'administration')} title={t.shell.administration} />
      <div class="grow" />
      {isAnonymous.value ? (
        <SignIn />
      ) : (
        <>
          <NavLink
            entry={{
              path: '/account',
              name: userName(user.value),
              icon: 'account',
              group: 'mesh',
            }}
          />
          {seeingAs === null && <SignOut />}
          <div class="nav-version faint">{t.shell.version(import.meta.env.VERSION)}</div>
        </>
      )}
    </nav>
  )
}

/** The state of the radio's link and of this page's live events. */
function States() {
  return (
    <div class="states">
      {can('info', 'read') && !isAnonymous.value && <LinkState />}
      {!isAnonymous.value && <LiveMark />}
    </div>
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
      <UnreadBadge path={entry.path} />
    </a>
  )
}

function UnreadBadge({ path }: { path: string }) {
  if (path === '/alerts') return <Unread count={firing.value} what={t.shell.firing} />
  return path === '/messages' ? <Unread count={unreadTotal.value} /> : null
}

function SignIn() {
  return (
    <a class="nav-link" href={href(`/login?returnTo=${encodeURIComponent(currentUrl.value)}`)}>
      <Icon name="account" />
      <span>{t.shell.signIn}</span>
    </a>
  )
}

/** Shown on every page while an administrator sees as somebody else. */
function SeeingAsBar({ name }: SeeingAs) {
  return (
    <div class="seeing-as" role="status">
      <Icon name="eye" />
      <span class="grow">{name === null ? t.shell.seesAsAnonymous : t.shell.seesAs(name)}</span>
      <button type="button" class="button small" onClick={() => seeAs(null)}>
        {t.shell.stopSeeing}
      </button>
    </div>
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
function TabBar({ onFind }: { onFind(): void }) {
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
          <States />
          <button
            type="button"
            class="nav-link"
            onClick={() => {
              isOpen.value = false
              onFind()
            }}
          >
            <Icon name="search" />
            <span>{t.finder.open}</span>
          </button>
          {all.slice(4).map((entry) => (
            <NavLink entry={entry} key={entry.path} />
          ))}
          {!isAnonymous.value && (
            <NavLink entry={{ path: '/account', name: t.nav.account, icon: 'account', group: 'mesh' }} />
          )}
          {!isAnonymous.value && seeingAs === null && <SignOut />}
        </div>
      )}
      <div class="tabs">
        {all.slice(0, 4).map((entry) => (
          <a
            class="tab"
            key={entry.path}
            href={href(entry.path)}
            aria-current={isHere(entry.path) ? 'page' : undefined}
          >
            <Icon name={entry.icon} />
            <span class="clip" title={entry.name}>
              {entry.name}
            </span>
            <UnreadBadge path={entry.path} />
          </a>
        ))}
        {isAnonymous.value ? (
          <a class="tab" href={href(`/login?returnTo=${encodeURIComponent(currentUrl.value)}`)}>
            <Icon name="account" />
            <span class="clip" title={t.shell.signIn}>
              {t.shell.signIn}
            </span>
          </a>
        ) : (
          <button type="button" class="tab" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
            <Icon name="menu" />
            <span class="clip" title={t.shell.menu}>
              {t.shell.menu}
            </span>
            <Unread count={firing.value} what={t.shell.firing} />
          </button>
        )}
      </div>
    </nav>
  )
}
