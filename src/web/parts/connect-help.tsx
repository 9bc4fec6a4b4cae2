import { settingsFor } from '../../shared/mesh/link-kinds.ts'
import { catalog } from '../language.ts'
import { isDeaf } from '../state/mesh/links.ts'
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
  if (!has('radio') || !isDeaf.value) return null
  return (
    <p>
      <strong>{connectTexts.noRadio}.</strong> {connectHelp()}
    </p>
  )
}
