import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { APP_NAME } from '../../../strings.ts'
import { frameTexts } from '../../../strings/mesh/frames.ts'
import '../map.css'
import '../../../parts/mesh/ways.css'
import './frame.css'

type Props = {
  title: string
  about?: ComponentChildren
  /** The full page, which opens outside the frame. */
  page: { readonly address: string; readonly name: string }
  children: ComponentChildren
}

/** A page in a frame of another site: a line with its name and the way to the full page, and all the rest for its content. */
export function Frame({ title, about, page, children }: Props) {
  useEffect(() => {
    document.title = `${title} · ${APP_NAME}`
  }, [title])
  return (
    <div class="frame">
      <header>
        <h1 dir="auto">{title}</h1>
        <span class="faint">{about}</span>
        <a class="button small" href={page.address} target="_blank" rel="noopener" aria-label={page.name}>
          {frameTexts.open}
        </a>
      </header>
      {children}
    </div>
  )
}
