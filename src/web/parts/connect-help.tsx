import { info } from '../state/mesh/links.ts'
import { has } from '../state/session.ts'
import { t } from '../strings.ts'

/** On an empty page of a service without a radio: how to connect one. */
export function ConnectHelp() {
  const known = info.value
  if (!has('radio') || known === null || known.links.length > 0) return null
  if (known.sources.some(({ kind }) => kind === 'ingest')) return null
  return (
    <p>
      <strong>{t.dashboard.noRadio}.</strong> {t.dashboard.noRadioHelp}
    </p>
  )
}
