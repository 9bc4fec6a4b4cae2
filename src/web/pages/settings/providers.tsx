import { api, ask } from '../../api.ts'
import { Copyable } from '../../parts/copy.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Card, Facts } from '../../parts/page.tsx'
import { useLoad } from '../../state/load.ts'
import { settingsTexts } from '../../strings/system/settings.ts'

/** The OpenID providers, each with the addresses to register there. */
export function ProvidersCard() {
  const texts = settingsTexts.providers
  const { data, error, reload } = useLoad(() => ask(api.auth.oidc.providers.$get()), [])
  return (
    <Card title={texts.title} help={texts.help}>
      <Failure error={error.value} retry={reload} />
      <ul class="rows provider-rows">
        {data.value?.providers.map(({ id, name, issuer, redirectUri, signedOutUri }) => (
          <li key={id}>
            <div class="grow">
              <strong>{name ?? texts.unnamed}</strong> <code>{id}</code>
              <Facts
                entries={[
                  [texts.issuer, issuer],
                  [texts.redirectUri, <Copyable text={redirectUri} name={texts.redirectUri} />],
                  [texts.signedOutUri, <Copyable text={signedOutUri} name={texts.signedOutUri} />],
                ]}
              />
            </div>
          </li>
        ))}
      </ul>
    </Card>
  )
}
