import type { Config } from '../../app/config/config.ts'
import { parseHostPort } from '../../app/config/host-port.ts'
import type { Candidate, Connecting, Found } from '../../app/connections/port.ts'
import type { Store } from '../../db/store.ts'
import { createTimer, type Clock } from '../clock.ts'
import type { ConfiguredRadio } from './connection.ts'
import { findRadios, type FoundRadio } from './find/find-radios.ts'
import type { ConfiguredFeed } from './link.ts'
import { probe } from './probe/probe.ts'
import { environmentLinks } from './stored.ts'
import { configure } from './target.ts'
import { LINK_REASONS } from '../../shared/mesh/link-reasons.ts'

const PROBE_MS = 20_000

type Needs = { readonly config: Config; readonly store: Store; readonly clock: Clock }

/** Asks what is at an address, apart from the connections that are open. */
export function openConnecting({ config, store, clock }: Needs): Connecting {
  return {
    environment: environmentLinks({ config }).wanted.map(({ configured: { name, kind } }) => ({ name, kind })),
    async probe(target) {
      let fingerprint: string | null = null
      const configured = configure('', target, (shown) => (fingerprint = shown))
      const found =
        'open' in configured ? await probeFeed(configured, { store, clock }) : await probeRadio(configured, clock)
      return { ...found, fingerprint }
    },
    async candidates() {
      const found = await findRadios({ clock })
      return found.flatMap((one) => candidateOf(one) ?? [])
    },
  }
}

type Outcome = Pick<Found, 'problem' | 'radio'>

async function probeRadio({ connect }: ConfiguredRadio, clock: Clock): Promise<Outcome> {
  const found = await probe(connect({ clock }), { clock })
  return found.ok ? { problem: null, radio: found.radio } : { problem: found.reason, radio: null }
}

/** A feed has no radio of its own that could say who it is. */
async function probeFeed({ open }: ConfiguredFeed, { store, clock }: Omit<Needs, 'config'>): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const patience = createTimer(clock)
  const link = open({
    store,
    clock,
    random: Math.random,
    onFrames: () => {},
    onState({ state, reason }) {
      if (state === 'connected') resolve(null)
      else if (state === 'waiting') resolve(reason)
    },
  })
  patience.start(PROBE_MS, () => resolve(LINK_REASONS.broker_unanswered))
  link.start()
  const problem = await promise
  patience.stop()
  link.stop()
  return { problem, radio: null }
}

function candidateOf({ kind, address, name, nodeId }: FoundRadio): Candidate | null {
  const shown = nodeId === null ? name : `${name} ${nodeId}`
  if (kind === 'serial') return { kind, name: shown, settings: { device: address } }
  const settings = parseHostPort(address)
  return settings === null ? null : { kind, name: shown, settings }
}
