import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../api.ts'
import { age } from '../../format.ts'
import { useLoad } from '../../load.ts'
import { Age, now } from '../../parts/age.tsx'
import { Card } from '../../parts/page.tsx'
import { has } from '../../session.ts'
import { t } from '../../strings.ts'

type Info = InferResponseType<typeof api.info.$get>

const POLL_MS = 10_000

/** The radios of the service, and how each link is. */
export function Radios() {
  if (has('radio')) return <KnownRadios />
  return (
    <Card title={t.dashboard.radios}>
      <p class="faint">{t.dashboard.noRadioHere}</p>
    </Card>
  )
}

function KnownRadios() {
  const { data } = useLoad(() => ask(api.info.$get()), [], POLL_MS, ['link'])
  const links = data.value?.links
  return (
    <Card title={t.dashboard.radios}>
      {links?.length === 0 && (
        <>
          <h3>{t.dashboard.noRadio}</h3>
          <p class="faint">{t.dashboard.noRadioHelp}</p>
        </>
      )}
      <ul class="rows tight">
        {links?.map((link) => (
          <RadioRow link={link} key={link.name} />
        ))}
      </ul>
    </Card>
  )
}

function RadioRow({ link }: { link: Info['links'][number] }) {
  const parts = [
    t.dashboard.since(age(link.since, now.value)),
    link.radio?.firmwareVersion ? t.dashboard.firmware(link.radio.firmwareVersion) : null,
    link.radio?.hwModel ?? null,
    link.reconnects > 0 ? t.dashboard.reconnects(link.reconnects) : null,
  ]
  return (
    <li>
      <div class="grow">
        <div class={`link-state link-${link.state}`}>
          <span class="dot" aria-hidden="true" />
          <strong>{link.name}</strong> {t.shell.link[link.state]}
        </div>
        <div class="faint">{parts.filter((part) => part !== null).join(' · ')}</div>
        {link.reason !== null && <div class="bad">{link.reason}</div>}
        {link.notice !== undefined && (
          <div class="notice notice-warn">
            {t.common.radioSays(link.notice.message)} <Age at={link.notice.at} />
          </div>
        )}
      </div>
    </li>
  )
}
