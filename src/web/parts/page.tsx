import { siteName } from '../state/session.ts'
import { withoutTurns } from '../direction.ts'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { href } from '../router.ts'
import { Icon } from './icon.tsx'

type Props = {
  title: string
  /** The parent page: its address and name. */
  up?: { path: string; name: string }
  actions?: ComponentChildren
  /** Fills the height of the window and scrolls inside. */
  fill?: boolean
  children: ComponentChildren
}

/** The frame of every page. The heading of a new page takes the focus, so that a screen reader announces it. */
export function Page({ title, up, actions, fill = false, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${withoutTurns(title)} · ${siteName.value}`
  }, [title, siteName.value])
  useEffect(() => heading.current?.focus({ preventScroll: true }), [])
  return (
    <div class={fill ? 'page page-fill' : 'page'}>
      <header class="page-head">
        <div>
          {up && (
            <a class="up" href={href(up.path)}>
              <Icon name="back" />
              {up.name}
            </a>
          )}
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export function Card(props: {
  title?: string
  help?: string
  actions?: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <section class="card">
      {props.title !== undefined && (
        <div class="card-head">
          <div>
            <h2>{props.title}</h2>
            {props.help !== undefined && <p class="faint">{props.help}</p>}
          </div>
          {props.actions !== undefined && <div class="actions">{props.actions}</div>}
        </div>
      )}
      {props.children}
    </section>
  )
}

/** Names and values; entries without a value are left out. */
export function Facts({ entries }: { entries: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  const known = entries.filter(([, value]) => value !== null && value !== undefined && value !== '')
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
