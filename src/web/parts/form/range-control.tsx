import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { place, queryNode, setQuery } from '../../router.ts'
import {
  isRangeName,
  type Range,
  RANGE_NAMES,
  type RangeName,
  rangeQuery,
  readRange,
  spanOf,
} from '../../state/range.ts'
import { rangeTexts } from '../../strings/range.ts'
import { Field, Select } from './field.tsx'

const WHOLE = ''
const CUSTOM = 'custom'
/** A custom range starts as this one. */
const FIRST: RangeName = '24h'

type Props = {
  /** The page's usual range; null: all of time. */
  fallback: RangeName | null
  label?: string
  /** Is told a choice that ends now; null: all of time. */
  onName?(range: RangeName | null): void
}

/** Chooses the time that a page shows, in its address, which `readRange` reads. To be put into a toolbar. */
export function RangeControl({ fallback, label = rangeTexts.label, onName }: Props) {
  const { query } = place.value
  const { range, isRefused } = readRange<Range | null>(query, fallback)
  const isCustom = range !== null && typeof range !== 'string'
  // In older addresses, the sender of packets or messages has the name of a time.
  const node = query.get('node') ?? queryNode(query, 'from') ?? ''
  const change = (next: Range | null) => setQuery({ ...rangeQuery(next), node })
  const choose = (value: string) => {
    if (value === CUSTOM) change(spanOf(range ?? FIRST, wholeMinute(Date.now())))
    else {
      const name = isRangeName(value) ? value : null
      change(name === fallback ? null : name)
      onName?.(name)
    }
  }
  const options = [
    ...(fallback === null ? [[WHOLE, rangeTexts.whole] as const] : []),
    ...RANGE_NAMES.map((name) => [name, rangeTexts.names[name]] as const),
    [CUSTOM, rangeTexts.custom] as const,
  ]
  return (
    <>
      <Select<string> label={label} value={isCustom ? CUSTOM : (range ?? WHOLE)} options={options} onChange={choose} />
      {isCustom && <Ends {...range} />}
      {isRefused && <p class="about range-refused">{rangeTexts.refused}</p>}
    </>
  )
}

/** Both ends in the time zone of this device, to the minute. */
function Ends({ from, to }: { from: number; to: number }) {
  const typed = useSignal({ from: localMinute(from), to: localMinute(to) })
  useEffect(() => {
    typed.value = { from: localMinute(from), to: localMinute(to) }
  }, [from, to])
  const change = (next: Partial<typeof typed.value>) => {
    typed.value = { ...typed.peek(), ...next }
    const ends = { from: new Date(typed.peek().from).getTime(), to: new Date(typed.peek().to).getTime() }
    if (ends.from >= 0 && ends.from < ends.to) setQuery(rangeQuery(ends))
  }
  const ends = typed.value
  return (
    <>
      <Field
        label={rangeTexts.from}
        type="datetime-local"
        value={ends.from}
        error={ends.from === '' ? rangeTexts.incomplete : null}
        onChange={(event) => change({ from: event.currentTarget.value })}
      />
      <Field
        label={rangeTexts.to}
        type="datetime-local"
        value={ends.to}
        error={ends.to === '' ? rangeTexts.incomplete : ends.from >= ends.to ? rangeTexts.backwards : null}
        onChange={(event) => change({ to: event.currentTarget.value })}
      />
    </>
  )
}

const wholeMinute = (time: number): number => Math.floor(time / 60_000) * 60_000

/** As such a field has it: `2026-11-23T18:05`. */
function localMinute(time: number): string {
  const at = new Date(time)
  return new Date(wholeMinute(time) - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
