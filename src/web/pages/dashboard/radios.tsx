import { age, modelName } from '../../format.ts'
import { info, type Info } from '../../state/mesh/links.ts'
import { Age, now } from '../../parts/age.tsx'
import { Card } from '../../parts/page.tsx'
import { has } from '../../state/session.ts'
import { connectTexts, ConnectWays } from '../../parts/connect-help.tsx'
import { problemWords } from '../../strings/system/radio-problems.ts'
import { t } from '../../strings.ts'

/** The radios of the service with the state of each link, and the sources that collectors deliver. */
export function Radios() {
  const links = info.value?.links
  const delivered = info.value?.sources.filter(({ kind }) => kind === 'ingest') ?? []
  return (
    <Card title={t.dashboard.radios}>
      {!has('radio') && <p class="faint">{t.dashboard.noRadioHere}</p>}
      {has('radio') && links?.length === 0 && delivered.length === 0 && (
        <>
          <h3>{connectTexts.noRadio}</h3>
          <p>
            <ConnectWays />
          </p>
        </>
      )}
      <ul class={links === undefined ? 'rows-awaited one' : 'rows tight'}>
        {links?.map((link) => (
          <RadioRow link={link} key={link.name} />
        ))}
        {delivered.map((source) => (
          <SourceRow source={source} key={source.name} />
        ))}
      </ul>
    </Card>
  )
}

function SourceRow({ source }: { source: Info['sources'][number] }) {
  return (
    <li>
      <div class="grow">
        <strong>{source.name}</strong> {t.dashboard.delivered}
        <div class="faint">
          {source.lastReceivedAt === null ? (
            t.dashboard.notLately
          ) : (
            <>
              {t.dashboard.lastPacket} <Age at={source.lastReceivedAt} />
            </>
          )}
          {source.sends.some((kind) => kind !== 'settings') && ` · ${t.dashboard.commanded}`}
        </div>
      </div>
    </li>
  )
}

function RadioRow({ link }: { link: Info['links'][number] }) {
  const parts = [
    t.dashboard.since(age(link.since, now.value)),
    link.radio?.firmwareVersion ? t.dashboard.firmware(link.radio.firmwareVersion) : null,
    link.radio?.hwModel ? modelName(link.radio.hwModel) : null,
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
        {link.reason !== null && link.state !== 'handshake' && <div class="bad">{problemWords(link.reason)}</div>}
        {link.notice !== undefined && (
          <div class="notice notice-warn">
            {t.common.radioSays(link.notice.message)} <Age at={link.notice.at} />
          </div>
        )}
      </div>
    </li>
  )
}
