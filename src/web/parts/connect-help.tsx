import { settingsFor } from '../../shared/mesh/link-kinds.ts'
import { catalog } from '../language.ts'
import { info } from '../state/mesh/links.ts'
import { has } from '../state/session.ts'

export const connectTexts = catalog('connectTexts', {
  noRadio: 'No radio is connected',
  noRadioHelp: (radio: string, simulated: string) =>
    `To connect your radio, set ${radio} and restart the service. To try it without one, set ${simulated}.`,
})

/** How to connect a radio, or to try the service without one. */
export const connectHelp = (): string => connectTexts.noRadioHelp(settingsFor('radio'), settingsFor('simulated'))

/** On an empty page of a service without a radio: how to connect one. */
export function ConnectHelp() {
  const known = info.value
  if (!has('radio') || known === null || known.links.length > 0) return null
  if (known.sources.some(({ kind }) => kind === 'ingest')) return null
  return (
    <p>
      <strong>{connectTexts.noRadio}.</strong> {connectHelp()}
    </p>
  )
}
