import { useEffect } from 'preact/hooks'
import { api, ask, send } from '../../api.ts'
import { askFirst } from '../../parts/dialog.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { place, setQuery } from '../../router.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { refreshStatus, status } from '../../state/session.ts'
import { t } from '../../strings.ts'

/** The account at a provider that also signs in to this one: links and unlinks it. */
export function LinkedAccount() {
  const { data, error, reload } = useLoad(() => ask(api.auth.oidc.link.$get()), [])
  const action = useAction()
  const { query } = place.value
  const failure = query.get('error')
  useEffect(() => {
    if (!query.has('linked')) return
    say(t.account.linked)
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
      text: t.account.unlinkSure,
      confirm: t.account.unlink,
      isDangerous: true,
      act: async () => {
        await send(api.auth.oidc.link.$delete())
        say(t.account.unlinked)
        await Promise.all([reload(), refreshStatus()])
      },
    })
  const texts: Readonly<Record<string, string>> = t.signIn.errors
  const providers = status.value?.providers ?? []
  return (
    <Card title={t.account.link} help={t.account.linkHelp}>
      {failure !== null && (
        <div class="notice notice-bad" role="alert">
          {texts[failure] ?? t.signIn.otherError}
        </div>
      )}
      <Failure error={error.value ?? action.error.value} />
      <ul class="rows">
        {link && (
          <li>
            <div class="grow">
              {t.account.linkedTo(link.issuer)}
              <div class="faint">
                {t.account.linkSubject}: {link.subject}
              </div>
              {!link.canUnlink && <div class="faint">{t.account.onlyWay}</div>}
            </div>
            {link.canUnlink && (
              <button type="button" class="button small" onClick={unlink}>
                {t.account.unlink}
              </button>
            )}
          </li>
        )}
        {link === null &&
          providers.map(({ id, name }) => (
            <li key={id}>
              <button type="button" class="button named" disabled={action.busy.value} onClick={() => void begin(id)}>
                {name === null ? t.account.linkWithAny : t.account.linkWith(name)}
              </button>
            </li>
          ))}
      </ul>
    </Card>
  )
}
