import { api, ask } from '../../api.ts'
import { bytes } from '../../format.ts'
import { Failure } from '../../parts/notice.tsx'
import { Card, Facts } from '../../parts/page.tsx'
import { href } from '../../router.ts'
import { useLoad } from '../../state/load.ts'
import { has, status } from '../../state/session.ts'
import { settingsTexts } from '../../strings/system/settings.ts'

/** What variables of the server decide, for administrators: the whole state is on the page *System*. */
export function ServiceCard() {
  const texts = settingsTexts.service
  const { data, error, reload } = useLoad(() => ask(api.system.$get()), [])
  const { version, release, storage } = data.value ?? {}
  const free = storage?.disk?.freeBytes ?? storage?.roomBytes ?? null
  return (
    <Card
      title={texts.title}
      help={texts.help}
      actions={
        <a class="button small" href={href('/system')}>
          {texts.open}
        </a>
      }
    >
      <Failure error={error.value} retry={reload} />
      {version !== undefined && (
        <Facts
          entries={[
            [texts.version, release?.isNewer === true ? texts.newer(version, release.latest ?? '') : version],
            [texts.database, typeof storage?.databaseBytes === 'number' ? bytes(storage.databaseBytes) : null],
            [storage?.disk ? texts.free : texts.room, free === null ? null : bytes(free)],
            [texts.mail, status.value?.accountMail ? texts.mailOn : has('radio') ? texts.mailOff : texts.mailNever],
            [texts.providers, status.value?.oidcEnabled ? null : texts.providersOff],
          ]}
        />
      )}
    </Card>
  )
}
