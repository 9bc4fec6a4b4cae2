import type { Ctx } from '../../app/base/context.ts'
import { AppError } from '../../app/http/errors.ts'
import { makeStandby, type Promotion, promoteStandby } from '../../app/system/standby.ts'
import { formatNodeId } from '../../meshtastic/node-id.ts'
import { hasLinks } from '../radio/configured.ts'

export const STANDBY_USAGE = `  standby                     make this service the standby of another one, which delivers to it
  promote [--token <id>] [--force]
                              make this standby the service with the radios, and revoke the token of the old one;
                              --token: which one, if several deliver; --force: even if it has just delivered
`

/** Runs on a database; returns what to print. */
type StandbyCommand = (ctx: Ctx) => Promise<string>

/** The command in all arguments; null if they are invalid, or `promote` names a user. */
export function readStandbyCommand([name, ...rest]: readonly string[]): StandbyCommand | null {
  if (name === 'standby') return rest.length === 0 ? begin : null
  if (name !== 'promote') return null
  const asked: { tokenId: number | null; isForced: boolean } = { tokenId: null, isForced: false }
  for (let i = 0; i < rest.length; i++) {
    if (rest[i] === '--force' && !asked.isForced) asked.isForced = true
    else if (rest[i] === '--token' && asked.tokenId === null && /^\d{1,9}$/.test(rest[i + 1] ?? '')) {
      i += 1
      asked.tokenId = Number(rest[i])
    } else return null
  }
  return async (ctx) => told(await promoteStandby(ctx, asked))
}

async function begin(ctx: Ctx): Promise<string> {
  if (hasLinks(ctx.config)) {
    throw new AppError('invalid_request', 'A standby has no radios: unset MESHTASTIC_TCP, MESHTASTIC_MQTT_URL and DEMO')
  }
  await makeStandby(ctx)
  return 'This service is a standby: it sends no alerts about the mesh, and does not start with radios\n'
}

function told({ isRepeat, revoked, sources }: Promotion): string {
  const radios = sources.filter(({ localNodeNum }) => localNodeNum !== null)
  const addresses = radios.flatMap(({ name }) => /^(?:[^/]+\/)?([^/]+:\d+)$/.exec(name)?.[1] ?? [])
  const others = sources.filter(({ localNodeNum }) => localNodeNum === null)
  const last = revoked?.lastDeliveredAt ?? null
  const lastText = last === null ? 'never delivered' : `last delivered at ${new Date(last).toISOString()}`
  const lines = [
    isRepeat
      ? 'This service was promoted before; nothing changed'
      : 'Promoted: this service is no standby any more, and sends alerts about the mesh again',
    ...(revoked === null ? [] : [`Revoked: the token ${revoked.name} of ${revoked.owner}, which ${lastText}`]),
    'Make sure that the old primary is off, or has no radio. Then set what reaches its radios from here, and start again:',
    `  MESHTASTIC_TCP=${addresses.length === 0 ? '…' : addresses.join(',')}`,
    ...radios.map(({ name, localNodeNum }) => `    ${formatNodeId(localNodeNum ?? 0)} was ${printable(name)}`),
    ...others.map(({ name }) => `  also delivered: ${printable(name)}, which is no radio`),
    'and its MESHTASTIC_MQTT_ variables, if it listened to a broker. Unset COLLECTOR_TARGET_URL until there is a new standby.',
  ]
  return lines.map((line) => `${line}\n`).join('')
}

// A collector chooses the names of its sources, and a terminal obeys control characters.
function printable(name: string): string {
  return name.replaceAll(/\p{C}/gu, '')
}
