import { useEffect, useRef } from 'preact/hooks'
import { useAction } from '../../state/load.ts'
import { t } from '../../strings.ts'
import { Failure } from '../notice.tsx'

/** The rows to ask for at once when all are wanted. */
export const MAX_AT_ONCE = 500
/** Pages of `MAX_AT_ONCE` rows on paper; more are for an export. */
const MAX_PAGES = 20

/**
 * Prints a list of which only the first rows are loaded: loads the others first, also for Ctrl+P. `loadNext` loads the
 * next rows and returns whether there are more; it throws an ApiError.
 */
export function PrintAll({ loadNext }: { loadNext(): Promise<boolean> }) {
  const { busy, error, run } = useAction()
  const latest = useRef(loadNext)
  latest.current = loadNext
  const printAll = async () => {
    const isLoaded = await run(async () => {
      for (let page = 0; page < MAX_PAGES && (await latest.current()); page++);
    })
    // The rows must be rendered first.
    if (isLoaded) requestAnimationFrame(() => requestAnimationFrame(() => print()))
  }
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'p' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      void printAll()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  return (
    <>
      <button type="button" class="button" disabled={busy.value} onClick={() => void printAll()}>
        {busy.value ? t.common.loading : t.common.printAll}
      </button>
      <Failure error={error.value} />
      <p class="paper-only">{t.common.notAllOnPaper}</p>
    </>
  )
}
