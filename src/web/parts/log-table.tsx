import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { dateTime, stamp } from '../format.ts'
import { t } from '../strings.ts'
import { Icon } from './icon.tsx'

type Heading = { readonly name: string; readonly wideOnly?: boolean }

/** A table of what happened when, the newest first; its rows are `LogRow`s. */
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

/** One line, and all of it once it is opened. `children` are the cells after the time, `span` how many there are. */
export function LogRow(props: { at: number; span: number; details(): ComponentChildren; children: ComponentChildren }) {
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
          <td colSpan={props.span + 1}>{props.details()}</td>
        </tr>
      )}
    </>
  )
}

/** Names and values as they are. */
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

/** Asks for what comes after what is shown; nothing when that is all. */
export function More<C>({ next, isBusy, onMore }: { next: C | null; isBusy: boolean; onMore(next: C): void }) {
  if (next === null) return null
  return (
    <button type="button" class="button" disabled={isBusy} onClick={() => onMore(next)}>
      {isBusy ? t.common.loading : t.common.more}
    </button>
  )
}
