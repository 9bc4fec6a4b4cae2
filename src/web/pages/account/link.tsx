import { useEffect } from 'preact/hooks'
import { api, ask, send } from '../../api.ts'
import { askFirst } from '../../parts/dialog.tsx'
import { Failure, Problem, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { place, setQuery } from '../../router.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { refreshStatus, status } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { accountTexts } from '../../strings/people/account.ts'

/** The account at a provider that also signs in to this one: links and unlinks it. */
export function LinkedAccount() {
  const { data, error, reload } = useLoad(() => ask(api.auth.oidc.link.$get()), [])
  const action = useAction()
  const { query } = place.value
  const failure = query.get('error')
  useEffect(() => {
    if (!query.has('linked')) return
    say(accountTexts.linked)
    setQuery({ linked: '' })
  }, [])
  const link = data.value?.link
  const begin = (provider: string) =>
    action.run(async () => {
      const { location: there } = await ask(api.auth.oidc.link.$post({ json: { provider } }))
      location.assign(there)
    })
  const unlink = () =>
    askFirst({
      text: accountTexts.unlinkSure,
      confirm: accountTexts.unlink,
      isDangerous: true,
      act: async () => {
        await send(api.auth.oidc.link.$delete())
        say(accountTexts.unlinked)
        await Promise.all([reload(), refreshStatus()])
      },
    })
  const texts: Readonly<Record<string, string>> = t.signIn.errors
  const providers = status.value?.providers ?? []
  return (
    <Card title={accountTexts.link} help={accountTexts.linkHelp}>
      {failure !== null && <Problem>{texts[failure] ?? t.signIn.otherError}</Problem>}
      <Failure error={error.value ?? action.error.value} />
      <ul class="rows">
        {link && (
          <li>
            <div class="grow">
              {accountTexts.linkedTo(link.issuer)}
              <div class="faint">
                {accountTexts.linkSubject}: {link.subject}
              </div>
              {!link.canUnlink && <div class="faint">{accountTexts.onlyWay}</div>}
            </div>
            {link.canUnlink && (
              <button type="button" class="button small" onClick={unlink}>
                {accountTexts.unlink}
              </button>
            )}
          </li>
        )}
        {link === null &&
          providers.map(({ id, name }) => (
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
