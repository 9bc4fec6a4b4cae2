import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { place, setQuery } from '../../router.ts'
import { SearchBox } from '../form/field.tsx'

const PAUSE_MS = 200

/** The search term, kept in the address as `q`, which is updated when typing pauses. */
export function SearchQuery({ label, hint }: { label: string; hint: string }) {
  const asked = place.value.query.get('q') ?? ''
  const typed = useSignal(asked)
  const sent = useRef(asked)
  useEffect(() => {
    // Changed by a link or the browser's history.
    if (asked !== sent.current) typed.value = sent.current = asked
  }, [asked])
  useEffect(() => {
    const timer = setTimeout(() => {
      const q = typed.value.trim()
      if (q !== sent.current) setQuery({ q: (sent.current = q) })
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [typed.value])
  return <SearchBox label={label} hint={hint} value={typed.value} onInput={(text) => (typed.value = text)} />
}
