import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { place, setQuery } from '../../router.ts'

/** What is typed into a search, kept in the address as `q`, which is updated when typing pauses for `pauseMs`. */
export function useQueryText(pauseMs: number): Signal<string> {
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
    }, pauseMs)
    return () => clearTimeout(timer)
  }, [typed.value])
  return typed
}
