import { effect } from '@preact/signals'
import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import './styles/tokens.css'
import './styles/base.css'
import './shell/shell.css'
import './parts/parts.css'
import './parts/list/table.css'
import './parts/mesh/badge.css'
import './pages/nodes/nodes.css'
import './styles/touch.css'
import './styles/forced-colors.css'
import './styles/print.css'
import { keepTime } from './parts/age.tsx'
import { Asker } from './parts/dialog.tsx'
import { Empty, Loading, Toaster } from './parts/notice.tsx'
import { Page } from './parts/page.tsx'
import { Shell } from './shell/shell.tsx'
import { mayOpen, nameNeed, navOf, ROUTES } from './pages/routes.tsx'
import { lazyPage } from './parts/list/lazy-page.tsx'
import { forgetInbox, keepReadMarks } from './state/messages/inbox.ts'
import { guardOfflineCache } from './state/offline-cache.ts'
import { wantedProof } from './state/proof.ts'
import { newRecoveryCodes } from './state/recovery-codes.ts'
import { forgetFiring } from './state/firing.ts'
import { forgetLinks } from './state/mesh/links.ts'
import { watchInstall } from './state/install-offer.ts'
import { keepLive } from './state/live.ts'
import { isEmbedded } from './api.ts'
import { PAGES } from '../shared/pages.ts'
import { forgetNodes, NodeKeeper } from './state/mesh/nodes.ts'
import { currentUrl, followLinks, href, navigate, place, safeReturn } from './router.ts'
import { forgetLists, watchPointer } from './state/steady.ts'
import { takeover } from './state/takeover.ts'
import {
  can,
  hasEnded,
  isAnonymous,
  keepStatus,
  readerKey,
  refreshStatus,
  status,
  statusError,
} from './state/session.ts'
import { APP_NAME, t } from './strings.ts'
import { keepDirection } from './direction.ts'
import { applyDisplay } from './state/display-choice.ts'
import { applyLanguage, isRightToLeft } from './language.ts'
import { applyTheme } from './theme.ts'

const RETRY_MS = 3000

const SignInPage = lazyPage(async () => (await import('./pages/account/sign-in.tsx')).SignInPage)
const NewPasswordPage = lazyPage(async () => (await import('./pages/users/new-password.tsx')).NewPasswordPage)
const MailLinkPage = lazyPage(async () => (await import('./pages/account/mail-link.tsx')).MailLinkPage)
const ForgotPage = lazyPage(async () => (await import('./pages/account/forgot.tsx')).ForgotPage)
const ProofAsker = lazyPage(async () => (await import('./parts/proof.tsx')).ProofAsker)
const RecoveryCodes = lazyPage(async () => (await import('./parts/recovery-codes.tsx')).RecoveryCodes)
const MapFrame = lazyPage(async () => (await import('./pages/map/frame/map-frame.tsx')).MapFrame)
const NodeFrame = lazyPage(async () => (await import('./pages/map/frame/node-frame.tsx')).NodeFrame)
const EnrolPage = lazyPage(async () => (await import('./pages/account/enrol.tsx')).EnrolPage)

function App() {
  return (
    <>
      <Screen />
      <Asker />
      {wantedProof.value !== null && <ProofAsker />}
      {newRecoveryCodes.value !== null && status.value?.authenticated && <RecoveryCodes />}
      <Toaster />
    </>
  )
}

function Screen() {
  const Takeover = takeover.value
  if (Takeover !== null) return <Takeover />
  const known = status.value
  if (known === null) return statusError.value === null ? <Starting /> : <Unreachable />
  if (isEmbedded) return <Embedded />
  if (PAGES.mailLink.test(place.value.path)) return <MailLinkPage />
  if (PAGES.forgot.test(place.value.path) && !known.authenticated) return <ForgotPage />
  if (!known.authenticated && (!isAnonymous.value || hasEnded.value || isSignInWanted())) return <ToSignIn />
  if (known.mustChangePassword) return <NewPasswordPage />
  if (known.secondFactor.isMissing) return <EnrolPage />
  if (place.value.path === '/login' || PAGES.forgot.test(place.value.path)) return <FromSignIn />
  return (
    <Shell key={readerKey.value}>
      <CurrentPage />
    </Shell>
  )
}

/** Shown until it is known who is signed in: the heading of the page that is opening. */
function Starting() {
  return (
    <main class="boot">
      <h1>{pageName(place.value.path)}</h1>
      <Loading />
    </main>
  )
}

/** The name of a page; for a subpage that of the page above it. */
function pageName(path: string): string {
  if (path === '/login') return t.signIn.title
  if (path === '/account') return t.nav.account
  const above = ROUTES.find(({ nav }) => nav !== undefined && (path === nav.path || path.startsWith(`${nav.path}/`)))
  return above?.nav?.name ?? APP_NAME
}

/** Somebody without an account wants to sign in, or opens a page that needs an account. */
function isSignInWanted(): boolean {
  const { path } = place.value
  if (path === '/login') return true
  const route = ROUTES.find(({ pattern }) => pattern.test(path))
  return path !== '/' && route !== undefined && !mayOpen(route.need)
}

function ToSignIn() {
  const { path } = place.value
  useEffect(() => {
    const here = currentUrl.peek()
    if (path !== '/login')
      navigate(here === '/' ? '/login' : `/login?returnTo=${encodeURIComponent(here)}`, { replace: true })
  }, [path])
  return path === '/login' ? <SignInPage /> : null
}

/** A page in a frame of another site, without the navigation. */
function Embedded() {
  const { path } = place.value
  const id = PAGES.embedNode.exec(path)?.groups?.['id']
  const isShown = can('nodes', 'read') && (id !== undefined || PAGES.embedMap.test(path))
  return (
    <main class="embedded">
      <NodeKeeper />
      {isShown ? id === undefined ? <MapFrame /> : <NodeFrame id={id.toLowerCase()} /> : <NotFound />}
    </main>
  )
}

function FromSignIn() {
  useEffect(() => navigate(safeReturn(place.peek().query.get('returnTo')), { replace: true }), [])
  return null
}

/** Whether some page was shown since this one was loaded. */
let hasArrived = false

function CurrentPage() {
  const { path } = place.value
  useEffect(() => {
    hasArrived = true
  }, [])
  const route = ROUTES.find(({ pattern }) => pattern.test(path))
  if (route === undefined) return <NotFound />
  if (isAnonymous.value && path === '/' && can('nodes', 'read') && !hasArrived) return <ToMap />
  if (!mayOpen(route.need)) {
    return path === '/' ? <Elsewhere need={nameNeed(route.need)} /> : <Denied need={nameNeed(route.need)} />
  }
  return route.draw(route.pattern.exec(path)?.groups ?? {})
}

/** People without an account begin on the map; the dashboard is one of their other pages. */
function ToMap() {
  useEffect(() => navigate('/map', { replace: true }), [])
  return null
}

/** The start page of somebody who may not see the dashboard: the first page that they may see. */
function Elsewhere({ need }: { need: string }) {
  // Everybody may open the pages of their own, which show nothing of the mesh.
  const open = ROUTES.flatMap((route) => (route.need === 'signed-in' ? [] : (navOf(route) ?? []))).at(0)
  useEffect(() => {
    if (open !== undefined) navigate(open.path, { replace: true })
  }, [open?.path])
  if (open !== undefined) return <Denied need={need} />
  return (
    <Page title={t.shell.nothing}>
      <Empty icon="lock">
        <p>{t.shell.nothingHelp}</p>
      </Empty>
    </Page>
  )
}

function Denied({ need }: { need: string }) {
  return (
    <Page title={t.shell.denied}>
      <Empty icon="lock">
        <p>{t.shell.deniedHelp(need)}</p>
        <a class="button" href={href('/')}>
          {t.shell.home}
        </a>
      </Empty>
    </Page>
  )
}

function NotFound() {
  return (
    <Page title={t.shell.notFound}>
      <Empty icon="search">
        <p>{t.shell.notFoundHelp}</p>
        <a class="button" href={href('/')}>
          {t.shell.home}
        </a>
      </Empty>
    </Page>
  )
}

function Unreachable() {
  useEffect(() => {
    const timer = setInterval(() => void refreshStatus(), RETRY_MS)
    return () => clearInterval(timer)
  }, [])
  return (
    <main class="alone">
      <Empty icon="warning">
        <h1>{t.shell.unreachable}</h1>
        <p>{t.shell.unreachableHelp}</p>
        <button type="button" class="button" onClick={() => void refreshStatus()}>
          {t.common.retry}
        </button>
      </Empty>
    </main>
  )
}

/** Data loaded for one user is not shown to the next, nor after a permission was withdrawn. */
function forgetAtChange(): void {
  let last = readerKey.peek()
  effect(() => {
    if (readerKey.value === last) return
    last = readerKey.value
    forgetNodes()
    forgetInbox()
    forgetLinks()
    forgetFiring()
    forgetLists()
  })
}

/** Links open outside the frame. */
function openElsewhere(): void {
  const base = document.createElement('base')
  base.target = '_blank'
  document.head.append(base)
}

keepDirection(isRightToLeft)
applyLanguage()
applyTheme()
applyDisplay()
if (isEmbedded) openElsewhere()
else followLinks()
watchInstall()
keepStatus()
guardOfflineCache()
keepTime()
watchPointer()
keepReadMarks()
keepLive()
forgetAtChange()
const root = document.querySelector('#app')
if (root !== null) render(<App />, root)
