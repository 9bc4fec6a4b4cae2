import { useEffect } from 'preact/hooks'
import { api, ask, send } from '../../api.ts'
import { askFirst } from '../../parts/dialog.tsx'
import { addressOf, LinkedRow, type LinkedProvider, providerName } from '../../parts/linked-rows.tsx'
import { Failure, Problem, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { place, setQuery } from '../../router.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { refreshStatus, status } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { accountTexts } from '../../strings/people/account.ts'

/** The accounts at providers that also sign in to this one: links and unlinks them. */
export function LinkedAccounts() {
  const { data, error, reload } = useLoad(() => ask(api.auth.oidc.link.$get()), [])
  const action = useAction()
  const { query } = place.value
  const failure = query.get('error')
  useEffect(() => {
    if (!query.has('linked')) return
    say(accountTexts.linked)
    setQuery({ linked: '' })
  }, [])
  const links = data.value?.links
  const begin = (provider: string) =>
    action.run(async () => {
      const { location: there } = await ask(api.auth.oidc.link.$post({ json: { provider } }))
      location.assign(there)
    })
  const unlink = (link: LinkedProvider) =>
    askFirst({
      text: accountTexts.unlinkSure(providerName(link)),
      confirm: accountTexts.unlink,
      isDangerous: true,
      act: async () => {
        await send(api.auth.oidc.link.$delete({ query: addressOf(link) }))
        say(accountTexts.unlinked)
        await Promise.all([reload(), refreshStatus()])
      },
    })
  const texts: Readonly<Record<string, string>> = t.signIn.errors
  const isLinked = (id: string) => links?.some(({ provider }) => provider === id)
  const others = links === undefined ? [] : (status.value?.providers ?? []).filter(({ id }) => !isLinked(id))
  return (
    <Card title={accountTexts.link} help={accountTexts.linkHelp}>
      {failure !== null && <Problem>{texts[failure] ?? t.signIn.otherError}</Problem>}
      <Failure error={error.value ?? action.error.value} />
      <ul class="rows">
        {links?.map((link) => (
          <LinkedRow key={link.issuer} link={link}>
            {link.canUnlink ? (
              <button
                type="button"
                class="button small"
                aria-label={accountTexts.unlinkLabel(providerName(link))}
                onClick={() => unlink(link)}
              >
                {accountTexts.unlink}
              </button>
            ) : (
              <span class="faint">{accountTexts.onlyWay}</span>
            )}
          </LinkedRow>
        ))}
        {others.map(({ id, name }) => (
          <li key={id}>
            <button type="button" class="button named" disabled={action.busy.value} onClick={() => void begin(id)}>
              {name === null ? accountTexts.linkWithAny : accountTexts.linkWith(name)}
            </button>
          </li>
        ))}
      </ul>
    </Card>
  )
}
