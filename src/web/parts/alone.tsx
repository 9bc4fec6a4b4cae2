import { siteName } from '../state/session.ts'
import type { ComponentChildren } from 'preact'

/** A page outside the application: no navigation. */
export function Alone({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <main class="alone">
      <div class="sign-in">
        <div class="brand">
          <Logo />
          {siteName.value}
        </div>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  )
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M9 22 16 9l7 13Z" />
      <circle cx="16" cy="9" r="3.4" />
      <circle cx="9" cy="22" r="3.4" />
      <circle cx="23" cy="22" r="3.4" />
    </svg>
  )
}
