import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { ApiError } from '../api.ts'
import { duration } from '../format.ts'
import { t } from '../strings.ts'
import { Icon, type IconName } from './icon.tsx'

/** The page's advice on an error, or the service's own if that is more specific. */
export function explain(error: ApiError): string {
  const texts: Readonly<Record<string, string>> = t.errors
  const text = texts[error.code]
  if (error.issues.length > 0) return `${text ?? error.message} ${error.issues.map(issueText).join('; ')}`
  // The service says what is wrong with the content of a text.
  return error.code === 'invalid_request' ? error.message : (text ?? error.message)
}

function issueText({ path, message }: { path: string; message: string }): string {
  return path === '' || path === 'password' ? message : `${path}: ${message}`
}

/** An error beside its cause, announced by screen readers. `retry`: something was not loaded. */
export function Failure({ error, retry }: { error: ApiError | null; retry?: () => void }) {
  if (error === null) return null
  if (retry === undefined) return <Told error={error} />
  // Each page says only once that the service is unreachable.
  return error.code === 'offline' ? (
    <p class="faint">{t.common.notLoaded}</p>
  ) : (
    <NotLoaded error={error} retry={retry} />
  )
}

type Loading = { readonly words: string; readonly retry: { current: () => void } }

/** What is not loaded, in the order in which it failed. */
const failed = signal<readonly Loading[]>([])

/** Several parts of a page often fail for one reason: it is said once, and one press tries all of them again. */
function NotLoaded({ error, retry }: { error: ApiError; retry: () => void }) {
  const words = explain(error)
  const own = useRef<Loading | null>(null)
  const latest = useRef(retry)
  latest.current = retry
  useLayoutEffect(() => {
    const entry = { words, retry: latest }
    own.current = entry
    failed.value = [...failed.peek(), entry]
    return () => (failed.value = failed.peek().filter((each) => each !== entry))
  }, [words])
  const same = failed.value.filter((each) => each.words === words)
  if ((same[0] ?? null) !== own.current) return null
  return <Told error={error} retry={() => same.forEach((each) => each.retry.current())} />
}

function Told({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div class="notice notice-bad" role="alert">
      <Icon name="warning" />
      <div>
        {error.code === 'rate_limited' ? <Wait seconds={error.retryAfter ?? 60} key={error} /> : explain(error)}
        {error.status >= 500 && error.requestId !== null && (
          <div class="faint mono">{t.common.reference(error.requestId)}</div>
        )}
      </div>
      {retry && (
        <button type="button" class="button small" onClick={retry}>
          {t.common.retry}
        </button>
      )}
    </div>
  )
}

/** A problem in the page's own words, announced by screen readers. */
export function Problem({ children }: { children: ComponentChildren }) {
  return (
    <div class="notice notice-bad" role="alert">
      <Icon name="warning" />
      <div>{children}</div>
    </div>
  )
}

/** Counts down the seconds of Retry-After. */
function Wait({ seconds }: { seconds: number }) {
  const left = useSignal(seconds)
  useEffect(() => {
    const until = Date.now() + seconds * 1000
    const timer = setInterval(() => {
      left.value = Math.max(0, Math.ceil((until - Date.now()) / 1000))
    }, 1000)
    return () => clearInterval(timer)
  }, [seconds])
  // Screen readers must not announce the number each second.
  return <span aria-live="off">{left.value === 0 ? t.signIn.waitOver : t.signIn.wait(duration(left.value))}</span>
}

const toast = signal<{ text: string; id: number } | null>(null)
let toasts = 0

/** Shows briefly that something worked. */
export function say(text: string): void {
  const id = ++toasts
  toast.value = { text, id }
  setTimeout(() => {
    if (toast.value?.id === id) toast.value = null
  }, 5000)
}

/** The open windows, the topmost last. */
export const openDialogs = signal<readonly string[]>([])

/** The place for what `say` shows: one in each window, and one on the page, of which the topmost is used. */
export function Toaster({ dialog }: { dialog?: string }) {
  return (
    <div class="toaster" role="status">
      {toast.value !== null && openDialogs.value.at(-1) === dialog && (
        <div class="toast" key={toast.value.id}>
          <Icon name="check" />
          {toast.value.text}
        </div>
      )}
    </div>
  )
}

/** A placeholder during loading; visible only if it takes long. */
export function Loading() {
  return (
    <p class="loading" role="status">
      {t.common.loading}
    </p>
  )
}

/** An empty area, and how to fill it. Without a `title`, the page's own is enough. */
export function Empty(props: { icon: IconName; title?: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={props.icon} />
      {props.title !== undefined && <h2>{props.title}</h2>}
      {props.children !== undefined && <div class="measure">{props.children}</div>}
    </div>
  )
}
