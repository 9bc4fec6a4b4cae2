import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { isPrinting } from './printing.ts'
import { isWide } from '../../state/wide-screen.ts'

export type Column<T, K extends string> = {
  readonly key: K
  readonly name: string
  readonly cell: (row: T) => ComponentChildren
  /** Shown only on wide screens, or only on even wider ones. */
  readonly wideOnly?: boolean
  readonly widestOnly?: boolean
  readonly isNumber?: boolean
}

type Props<T, K extends string> = {
  label: string
  rows: readonly T[]
  columns: readonly Column<T, K>[]
  rowKey(row: T): number | string
  sort: { readonly by: K; readonly isDown: boolean }
  onSort(by: K): void
  rowClass?(row: T): string
  /** The height of a row with two lines on narrow screens. */
  narrowRowPx?: number
}

/** Rows of equal height. Only visible ones are rendered, so thousands scroll as smoothly as ten. */
const ROW_PX = 44
const SPARE_ROWS = 8

export function VirtualTable<T, K extends string>(props: Props<T, K>) {
  const rowPx = isWide.value ? ROW_PX : (props.narrowRowPx ?? ROW_PX)
  const box = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  const height = useSignal(600)
  useLayoutEffect(() => {
    const element = box.current
    if (element === null) return
    const observer = new ResizeObserver(() => (height.value = element.clientHeight))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const { rows, columns } = props
  // The table is a single tab stop; arrow keys reach the controls in its rows.
  useLayoutEffect(() => {
    for (const inner of box.current?.querySelectorAll<HTMLElement>('tbody a, tbody button') ?? []) inner.tabIndex = -1
  })
  const walk = (event: KeyboardEvent) => {
    const element = box.current
    if (element === null || !(event.target instanceof Element) || event.target.closest('thead') !== null) return
    const page = Math.max(1, Math.floor(element.clientHeight / rowPx) - 2)
    const at = Number(event.target.closest('tr')?.getAttribute('aria-rowindex') ?? 0) - 2
    const from = at >= 0 ? at : Math.ceil(element.scrollTop / rowPx) - 1
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length }
    const step = Object.entries(steps).find(([key]) => key === event.key)?.[1]
    if (step === undefined || rows.length === 0) return
    event.preventDefault()
    const next = Math.max(0, Math.min(rows.length - 1, from + step))
    // The heading sticks at the top.
    const [least, most] = [(next + 2) * rowPx - element.clientHeight, next * rowPx]
    element.scrollTop = Math.min(most, Math.max(least, element.scrollTop))
    top.value = element.scrollTop
    requestAnimationFrame(() => {
      const row = element.querySelector(`tr[aria-rowindex="${next + 2}"]`)
      row?.querySelector<HTMLElement>('a, button')?.focus({ preventScroll: true })
    })
  }
  const isAll = isPrinting.value
  const first = isAll ? 0 : Math.max(0, Math.min(Math.floor(top.value / rowPx), rows.length - 1) - SPARE_ROWS)
  const last = isAll ? rows.length : Math.min(rows.length, first + Math.ceil(height.value / rowPx) + 2 * SPARE_ROWS)
  return (
    // A region that scrolls must take the focus, or else a keyboard cannot scroll it.
    <div
      class="table-box virtual"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={props.label}
      onKeyDown={walk}
      onScroll={(event) => {
        // Renders other rows only when the current ones run out, not for every pixel.
        const scrolled = event.currentTarget.scrollTop
        if (Math.abs(scrolled - top.value) > (rowPx * SPARE_ROWS) / 2) top.value = scrolled
      }}
    >
      <table class="table fixed" aria-rowcount={rows.length + 1}>
        <Head {...props} />
        <tbody>
          <Gap rows={first} rowPx={rowPx} />
          {rows.slice(first, last).map((row, index) => (
            <tr
              key={props.rowKey(row)}
              aria-rowindex={first + index + 2}
              class={props.rowClass?.(row) ?? ''}
              {...(rowPx !== ROW_PX && { style: { height: `${rowPx}px` } })}
            >
              {columns.map((column, at) => (
                <Cell column={column} row={row} isName={at === 0} key={column.key} />
              ))}
            </tr>
          ))}
          <Gap rows={rows.length - last} rowPx={rowPx} />
        </tbody>
      </table>
    </div>
  )
}

type Look = { wideOnly?: boolean; widestOnly?: boolean; isNumber?: boolean }

function classOf({ wideOnly, widestOnly, isNumber }: Look): string {
  return `${wideOnly ? 'wide-only' : ''} ${widestOnly ? 'widest-only' : ''} ${isNumber ? 'num' : ''}`
}

function Cell<T, K extends string>({ column, row, isName }: { column: Column<T, K>; row: T; isName: boolean }) {
  return isName ? <th scope="row">{column.cell(row)}</th> : <td class={classOf(column)}>{column.cell(row)}</td>
}

function Head<T, K extends string>({ columns, sort, onSort }: Props<T, K>) {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((column) => (
          <th
            scope="col"
            key={column.key}
            class={`${classOf(column)} col-${column.key}`}
            aria-sort={sort.by === column.key ? (sort.isDown ? 'descending' : 'ascending') : 'none'}
          >
            <button type="button" class="sort" onClick={() => onSort(column.key)}>
              {column.name}
            </button>
          </th>
        ))}
      </tr>
    </thead>
  )
}

// One cell only, because a cell across all columns would make columns reappear that narrow screens omit.
function Gap({ rows, rowPx }: { rows: number; rowPx: number }) {
  if (rows <= 0) return null
  return (
    <tr aria-hidden="true" class="gap">
      <td style={{ height: `${rows * rowPx}px` }} />
    </tr>
  )
}
