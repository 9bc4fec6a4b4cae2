import { settingsFor } from '../../shared/mesh/link-kinds.ts'
import { catalog } from '../language.ts'
import { href } from '../router.ts'
import { isDeaf } from '../state/mesh/links.ts'
import { can, has } from '../state/session.ts'

/** The page's address with the dialog in which a radio is connected. */
export const CONNECT_PATH = '/configuration/connections?add=radio'

export const connectTexts = catalog('connectTexts', {
  noRadio: 'No radio is connected',
  connect: 'Connect a radio',
  askFor: 'Somebody with the permission to change the configuration can connect one.',
  tryIt: (simulated: string) => `To try the service without a radio, set ${simulated} and restart it.`,
})

/** How to connect a radio, or to try the service without one. */
export function ConnectWays() {
  return (
    <>
      {can('configuration', 'write') ? <a href={href(CONNECT_PATH)}>{connectTexts.connect}</a> : connectTexts.askFor}{' '}
      <span class="faint">{connectTexts.tryIt(settingsFor('simulated'))}</span>
    </>
  )
}

/** On an empty page of a service without a radio: how to connect one. */
export function ConnectHelp() {
  if (!has('radio') || !isDeaf.value) return null
  return (
    <p>
      <strong>{connectTexts.noRadio}.</strong> <ConnectWays />
    </p>
  )
}
