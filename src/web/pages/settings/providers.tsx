import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../api.ts'
import { count } from '../../format.ts'
import { Age } from '../../parts/age.tsx'
import { Copyable } from '../../parts/copy.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Card, Facts } from '../../parts/page.tsx'
import { useAction, useLoad } from '../../state/load.ts'
import { useSignal } from '@preact/signals'
import { settingsTexts } from '../../strings/system/settings.ts'

const test = api.auth.oidc.providers[':provider'].test.$post
type Provider = InferResponseType<typeof api.auth.oidc.providers.$get>['providers'][number]
type Tested = InferResponseType<typeof test, 200>
type Why = NonNullable<Tested['failure']>

/** The OpenID providers: the addresses to register there, how it goes, and a test without a sign-in. */
export function ProvidersCard() {
  const texts = settingsTexts.providers
  const { data, error, reload } = useLoad(() => ask(api.auth.oidc.providers.$get()), [])
  return (
    <Card title={texts.title} help={texts.help}>
      <Failure error={error.value} retry={reload} />
      <ul class="rows provider-rows">
        {data.value?.providers.map((provider) => (
          <ProviderRow {...provider} onTested={reload} key={provider.id} />
        ))}
      </ul>
    </Card>
  )
}

function ProviderRow({
  id,
  name,
  issuer,
  redirectUri,
  signedOutUri,
  lastFailure,
  onTested,
}: Provider & { onTested(): void }) {
  const texts = settingsTexts.providers
  const { busy, error, run } = useAction()
  const tested = useSignal<Tested | null>(null)
  const begin = () =>
    run(async () => {
      tested.value = await ask(test({ param: { provider: id } }))
      onTested()
    })
  return (
    <li>
      <div class="grow stack">
        <div>
          <strong>{name ?? texts.unnamed}</strong> <code>{id}</code>
        </div>
        <Facts
          entries={[
            [texts.issuer, issuer],
            [texts.redirectUri, <Copyable text={redirectUri} name={texts.redirectUri} />],
            [texts.signedOutUri, <Copyable text={signedOutUri} name={texts.signedOutUri} />],
            [
              texts.lastFailure,
              lastFailure === null || tested.value !== null ? null : <LastFailure {...lastFailure} />,
            ],
          ]}
        />
        <div role="status">{tested.value !== null && <Outcome {...tested.value} />}</div>
        <Failure error={error.value} />
        <div class="provider-test">
          <button type="button" class="button" disabled={busy.value} onClick={begin}>
            {busy.value ? texts.testing : texts.test}
          </button>
          <span class="faint">{texts.testHelp}</span>
        </div>
      </div>
    </li>
  )
}

function LastFailure({ at, ...why }: Why & { readonly at: number }) {
  return (
    <>
      <Age at={at} /> · {wordsOf(why)}
    </>
  )
}

function Outcome({ failure, found }: Tested) {
  const texts = settingsTexts.providers
  if (failure !== null) return <p class="bad">{wordsOf(failure)}</p>
  return (
    <p class="good">
      {texts.works(count(found?.keys ?? 0))}
      {found?.endSessionEndpoint === null && ` · ${texts.noSignOut}`}
    </p>
  )
}

/** What an administrator can do something about, in words; the rest with the name that the audit log has for it. */
function wordsOf({ reason, details }: Why): string {
  const texts = settingsTexts.providers.failures
  const detail = (name: string) => String(details[name] ?? reason)
  switch (reason) {
    case 'discovery_unreachable':
    case 'token_unreachable':
    case 'keys_unreachable':
      return texts.unreachable(detail('why'))
    case 'discovery_refused':
      return texts.refused(detail('status'))
    case 'discovery_invalid':
      return texts.invalid(detail('fields'))
    case 'discovery_issuer_wrong':
      return texts.issuerWrong
    case 'discovery_too_often':
      return texts.tooOften
    case 'keys_refused':
    case 'keys_invalid':
    case 'keys_unusable':
      return texts.keys
    case 'token_refused':
    case 'token_invalid':
      return texts.token(detail('error'))
    case 'provider_denied':
      return texts.denied
    case 'user_unknown':
    case 'user_inactive':
    case 'group_missing':
      return texts.notAdmitted(reason)
    default:
      return /^(?:id_token|key|claim|userinfo)_/.test(reason) ? texts.idToken(reason) : texts.other(reason)
  }
}
