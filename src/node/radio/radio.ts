import type { Ports, Radio } from '../../app/context.ts'
import { createIngest } from '../../app/mesh/ingest.ts'
import { createBatcher } from './batcher.ts'
import { type Connect, type LinkClock, systemClock } from './connection.ts'
import { connectDemo } from './demo.ts'
import { createLink, type Link } from './link.ts'
import { connectTcp } from './tcp.ts'

/** The radio links of a Node process. */
export type NodeRadio = Radio & {
  /** Hangs up, and answers when all that was heard is stored. */
  close(): Promise<void>
}

type Needs = Pick<Ports, 'config' | 'store' | 'log'> & { readonly clock?: LinkClock }

/** Connects to the radios of MESHTASTIC_TCP, or to a made-up one when DEMO is true, and stores what they say. */
export function openRadio({ config, store, log, clock = systemClock }: Needs): NodeRadio {
  const batcher = createBatcher({
    ingest: createIngest(store),
    log,
    clock,
    onStored: (news) => log.debug('Packets stored', { packets: news.length }),
  })
  const open = (kind: 'tcp' | 'demo', name: string, connect: Connect): Link => {
    let told = ''
    return createLink({
      name,
      kind,
      connect,
      clock,
      onFrames: (batch) => batcher.push(batch.map(({ event }) => ({ source: { kind, name }, event }))),
      onState({ state, reason }) {
        // The same failure again and again is told once.
        if (`${state} ${reason}` === told) return
        const isPassing = state === 'connecting' || state === 'handshake'
        if (!isPassing) told = `${state} ${reason}`
        log[isPassing ? 'debug' : 'info']('Radio link', { link: name, state, reason })
      },
    })
  }
  if (config.DEMO && config.MESHTASTIC_TCP.length > 0) log.warn('MESHTASTIC_TCP is not used while DEMO is true')
  const links = config.DEMO
    ? [open('demo', 'demo', connectDemo({ clock }))]
    : config.MESHTASTIC_TCP.map((target) => open('tcp', nameOf(target), connectTcp(target)))
  for (const link of links) link.start()
  return {
    links: () => links.map((link) => link.info()),
    async close() {
      for (const link of links) link.stop()
      await batcher.close()
    },
  }
}

function nameOf({ host, port }: { host: string; port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
