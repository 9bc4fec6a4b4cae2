import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { online } from '../../api.ts'
import { t } from '../../strings.ts'
import { AGAIN_MS } from '../lazy-drawing.ts'
import { Empty, Loading } from '../notice.tsx'
import { Page } from '../page.tsx'

/** A page whose code is loaded when it is first opened. Its heading, `title`, is shown at once; null: no heading. */
export function lazyPage<P extends object>(
  load: () => Promise<FunctionComponent<P>>,
  title: string | null = null,
): FunctionComponent<P> {
  const found = signal<{ readonly Page: FunctionComponent<P> } | null>(null)
  const hasFailed = signal(false)
  let hasBegun = false
  const begin = async () => {
    hasBegun = true
    try {
      found.value = { Page: await load() }
    } catch (cause) {
      if (!hasFailed.peek()) console.error(cause)
      hasFailed.value = true
    }
  }
  const retry = () => {
    hasFailed.value = false
    void begin()
  }
  return (props) => {
    if (!hasBegun) void begin()
    if (found.value !== null) return <found.value.Page {...props} />
    if (hasFailed.value) return <Missing retry={retry} again={() => void begin()} />
    if (title === null) return null
    return (
      <Page title={title}>
        <Loading />
      </Page>
    )
  }
}

/**
 * Shown if the service is unreachable or has a different version than this page. `again`: retries in the background
 * until the page loads.
 */
function Missing({ retry, again }: { retry: () => void; again: () => void }) {
  useEffect(() => {
    const timer = setInterval(again, AGAIN_MS)
    return () => clearInterval(timer)
  }, [])
  return (
    <Page title={t.shell.missing}>
      <Empty icon="warning">
        <p>{online.value ? t.shell.missingHelp : t.shell.missingOffline}</p>
        <button type="button" class="button" onClick={retry}>
          {t.common.retry}
        </button>{' '}
        <button type="button" class="button" onClick={() => location.reload()}>
          {t.shell.reload}
        </button>
      </Empty>
    </Page>
  )
}
