import './log-table.css'
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { dateTime, stamp } from '../../format.ts'
import { isWide } from '../../state/wide-screen.ts'
import { t } from '../../strings.ts'
import { Icon } from '../icon.tsx'
import { PrintAll } from './whole-list.tsx'

type Heading = { readonly name: string; readonly wideOnly?: boolean }

/** A table of events, newest first; its rows are `LogRow`s. */
export function LogTable({ headings, children }: { headings: readonly Heading[]; children: ComponentChildren }) {
  return (
    <div class="table-box">
      <table class="table audit">
        <thead>
          <tr>
            {headings.map(({ name, wideOnly }) => (
              <th scope="col" class={wideOnly ? 'wide-only' : ''} key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

type LogRowProps = {
  at: number
  /** The number of cells after the time, and how many of them are for wide screens only. */
  span: number
  wideSpan: number
  details(): ComponentChildren
  children: ComponentChildren
}

/** One line, and all details once it is opened. `children` are the cells after the time. */
export function LogRow(props: LogRowProps) {
  const isOpen = useSignal(false)
  return (
    <>
      <tr>
        <td class="nowrap">
          <button
            type="button"
            class="expander"
            aria-expanded={isOpen.value}
            onClick={() => (isOpen.value = !isOpen.value)}
          >
            <Icon name="next" />
            <time dateTime={new Date(props.at).toISOString()} title={dateTime(props.at)}>
              {stamp(props.at)}
            </time>
          </button>
        </td>
        {props.children}
      </tr>
      {isOpen.value && (
        <tr class="detail">
          {/* On a phone, a cell across all columns would make those for wide screens reappear. */}
          <td colSpan={1 + props.span - (isWide.value ? 0 : props.wideSpan)}>{props.details()}</td>
        </tr>
      )}
    </>
  )
}

/** Names and values, unformatted. */
export function RawFacts({ facts }: { facts: readonly (readonly [name: string, value: string])[] }) {
  return (
    <dl class="facts mono">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

type MoreProps<C> = {
  next: C | null
  isBusy: boolean
  onMore(next: C): void
  /** As in `PrintAll`, for lists that are printed. */
  loadNext?: () => Promise<boolean>
}

/** Loads the next rows; empty at the end of the list. */
export function More<C>({ next, isBusy, onMore, loadNext }: MoreProps<C>) {
  if (next === null) return null
  return (
    <div class="more">
      <button type="button" class="button" disabled={isBusy} onClick={() => onMore(next)}>
        {isBusy ? t.common.loading : t.common.more}
      </button>
      {loadNext !== undefined && <PrintAll loadNext={loadNext} />}
    </div>
  )
}
