import type { InferResponseType } from 'hono/client'
import type { ComponentChildren } from 'preact'
import type { api } from '../../api.ts'
import { date } from '../../format.ts'
import { RESOURCE_NAMES } from '../../../shared/access/resources.ts'
import { t } from '../../strings.ts'
import { accountTexts } from '../../strings/people/account.ts'
import { Age } from '../age.tsx'

type Session = InferResponseType<typeof api.auth.sessions.$get>['sessions'][number]
export type Token = InferResponseType<typeof api.tokens.$get>['tokens'][number]

/** A session in a list; `children` is the button that ends it. */
export function SessionRow({ session, children }: { session: Session; children: ComponentChildren }) {
  return (
    <li>
      <div class="grow">
        <strong>{deviceName(session.userAgent)}</strong>{' '}
        {session.current && <span class="tag good">{accountTexts.current}</span>}
        <div class="faint">
          {session.ip} · {accountTexts.lastSeen} <Age at={session.lastSeenAt} /> · {accountTexts.since}{' '}
          <Age at={session.createdAt} />
        </div>
      </div>
      {children}
    </li>
  )
}

/** A token in a list; `children` is the button that revokes it. */
export function TokenRow({ token, children }: { token: Token; children: ComponentChildren }) {
  return (
    <li>
      <div class="grow">
        <strong>{token.name}</strong> <code>{token.prefix}…</code>{' '}
        {token.heldAt !== null && <span class="tag warn">{accountTexts.held}</span>}
        <div class="faint">
          {token.scopes.map(scopeName).join(', ')} · {accountTexts.lastUsed} <Age at={token.lastUsedAt} /> ·{' '}
          {accountTexts.expiresAt} {token.expiresAt === null ? t.common.never : date(token.expiresAt)}
        </div>
        {token.heldAt !== null && <div class="faint">{accountTexts.heldHelp}</div>}
      </div>
      {children}
    </li>
  )
}

/** The browser and its system from a User-Agent header. */
export function deviceName(userAgent: string | null): string {
  if (userAgent === null) return t.common.none
  const browser = /(Edg|OPR|Firefox|Chrome|Safari)\/(\d+)/.exec(userAgent)
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|CrOS|Linux)/.exec(userAgent)?.[1]
  if (browser === null) return userAgent.slice(0, 40)
  const name = { Edg: 'Edge', OPR: 'Opera' }[browser[1] ?? ''] ?? browser[1]
  return system === undefined ? `${name} ${browser[2]}` : `${name} ${browser[2]}, ${system}`
}

export function scopeName(scope: string): string {
  const special = Object.entries(t.scopes).find(([known]) => known === scope)?.[1]
  if (special !== undefined) return special
  const [resource, action] = scope.split(':')
  const name = RESOURCE_NAMES.find((known) => known === resource)
  return name === undefined ? scope : `${t.resources[name]}: ${action === 'write' ? t.actions.write : t.actions.read}`
}
