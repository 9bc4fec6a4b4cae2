import type { Ports } from '../../app/base/context.ts'
import { noteEnvironment, pinCertificate, readConnections } from '../../app/connections/connections.ts'
import type { VirtualNodeOptions } from '../../app/connections/virtual-node-options.ts'
import type { Target } from '../../app/connections/settings.ts'
import { readStandby } from '../../app/settings/standby.ts'
import { isSimulated } from '../../shared/mesh/link-kinds.ts'
import { configuredLinks, type Configured } from './configured.ts'
import { configure } from './target.ts'
import type { Wanted } from './link-set.ts'

type Needs = Pick<Ports, 'store' | 'config'> & {
  readonly now: () => number
  /** Called when the certificate of a connection was pinned: its key is another one from now on. */
  readonly onPinned: (name: string, key: string) => void
  readonly onError: (error: unknown) => void
}

/** The connections that shall be open, and the names of all that are known, those that are switched off included. */
export type WantedLinks = {
  readonly wanted: readonly Wanted<Configured>[]
  readonly names: readonly string[]
  /** Options of the ports for apps, by the name of the connection. */
  readonly virtualNodes: ReadonlyMap<string, VirtualNodeOptions>
}

/** Those of the environment. */
export function environmentLinks({ config }: Pick<Needs, 'config'>): WantedLinks {
  const { radios, feeds } = configuredLinks(config)
  const all: readonly Configured[] = [...radios, ...feeds]
  return {
    wanted: all.map((configured) => ({ key: 'environment', configured })),
    names: all.map(({ name }) => name),
    virtualNodes: new Map(),
  }
}

/**
 * Those of the environment, then those of the table: none of the table while DEMO is true, or in a standby, and of those
 * that a restore brought back only the released ones.
 */
export async function wantedLinks(needs: Needs): Promise<WantedLinks> {
  const { config, store } = needs
  const ofEnvironment = environmentLinks(needs)
  const links = ofEnvironment.wanted.map(({ configured: { name, kind } }) => ({ name, kind }))
  if (links.some(({ kind }) => isSimulated(kind)) || (await readStandby(store)) === 'standby') return ofEnvironment
  await noteEnvironment(store, links, needs.now())
  const all = await readConnections({ config, store })
  const stored = all.filter(({ row }) => row.sealed !== null)
  const wanted = stored.flatMap((one) => {
    const { target, row } = one
    if (target === null || !row.enabled || row.heldAt !== null) return []
    const pin = async (fingerprint: string) => {
      const pinned = await pinCertificate(needs, one, fingerprint)
      if (pinned !== null) needs.onPinned(row.name, keyOf(pinned))
    }
    const configured = configure(row.name, target, (fingerprint) => void pin(fingerprint).catch(needs.onError))
    return [{ key: keyOf(target), configured }]
  })
  return {
    wanted: [...ofEnvironment.wanted, ...wanted],
    names: [...ofEnvironment.names, ...stored.map(({ row }) => row.name)],
    virtualNodes: new Map(
      all.flatMap(({ row, virtualNode }) =>
        virtualNode === null || row.heldAt !== null ? [] : [[row.name, virtualNode]],
      ),
    ),
  }
}

function keyOf(target: Target): string {
  return JSON.stringify(target)
}
