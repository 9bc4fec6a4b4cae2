import type { ComponentChildren } from 'preact'
import { status } from '../state/session.ts'
import { accountTexts } from '../strings/people/account.ts'
import { Age } from './age.tsx'

/** An account at a provider that signs a user in, as GET answers it. */
export type LinkedProvider = {
  readonly provider: string | null
  readonly issuer: string
  readonly subject: string
  readonly linkedAt: number
}

/** The name on the provider's button, or its issuer. */
export function providerName({ provider, issuer }: Pick<LinkedProvider, 'provider' | 'issuer'>): string {
  return status.value?.providers.find(({ id }) => id === provider)?.name ?? issuer
}

/** The address of a link in requests: a provider that is no longer configured has no name. */
export function addressOf({ provider, issuer }: LinkedProvider): { provider: string } | { issuer: string } {
  return provider === null ? { issuer } : { provider }
}

/** One linked account; `children` is its button. */
export function LinkedRow({ link, children }: { link: LinkedProvider; children: ComponentChildren }) {
  const name = providerName(link)
  return (
    <li>
      <div class="grow break">
        {accountTexts.linkedTo(name)}
        {name !== link.issuer && <div class="faint">{link.issuer}</div>}
        <div class="faint">
          {accountTexts.linkSubject}: {link.subject} · {accountTexts.linkedSince} <Age at={link.linkedAt} />
        </div>
        {link.provider === null && link.issuer !== PROXY && <div class="faint">{accountTexts.linkGone}</div>}
      </div>
      {children}
    </li>
  )
}

/** Stands for the authenticating proxy, which is no provider. */
const PROXY = 'proxy:'
