import { SearchBox } from '../form/field.tsx'
import { useQueryText } from './query-text.ts'

const PAUSE_MS = 200

/** The search term, kept in the address as `q`. */
export function SearchQuery({ label, hint }: { label: string; hint: string }) {
  const typed = useQueryText(PAUSE_MS)
  return <SearchBox label={label} hint={hint} value={typed.value} onInput={(text) => (typed.value = text)} />
}
