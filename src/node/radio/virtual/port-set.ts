import type { VirtualNodeOptions } from '../../../app/connections/virtual-node-options.ts'
import type { PortInfo } from '../../../app/mesh/radios/radio.ts'
import { openVirtualNode, type VirtualNode, type VirtualNodeNeeds } from './virtual-node.ts'

type Radio = Pick<VirtualNodeNeeds, 'link' | 'transmitter' | 'claimSettings'>
type Needs = Omit<VirtualNodeNeeds, keyof Radio | 'options' | 'findViewer' | 'radios'> & {
  readonly findViewer: (userId: number | null) => ReturnType<VirtualNodeNeeds['findViewer']>
  /** Names of all known radios, in their order. */
  readonly names: () => readonly string[]
}

type Open = { readonly radio: Radio; readonly key: string; readonly port: VirtualNode }

/** The ports for apps of a process. */
export type PortSet = {
  /** Opens and closes ports: `options` by the name of the radio. A port whose options are the same is not touched. */
  want(radios: readonly Radio[], options: ReadonlyMap<string, VirtualNodeOptions>): void
  infos(): ReadonlyMap<string, PortInfo>
  close(): Promise<void>
}

export function createPortSet({ findViewer, names, ...needs }: Needs): PortSet {
  const open = new Map<string, Open>()
  /** Ports on their way down, whose numbers may be wanted again. */
  let closing: Promise<unknown> = Promise.resolve()
  const close = (name: string, { port }: Open) => {
    open.delete(name)
    closing = Promise.all([closing, port.close()])
  }
  return {
    want(radios, options) {
      const byName = new Map(radios.map((radio) => [radio.link.info().name, radio]))
      for (const [name, one] of open) {
        const wanted = options.get(name)
        if (one.radio !== byName.get(name) || one.key !== JSON.stringify(wanted)) close(name, one)
      }
      for (const [name, radio] of byName) {
        const wanted = options.get(name)
        if (wanted === undefined || open.has(name)) continue
        const port = openVirtualNode({
          ...needs,
          ...radio,
          options: wanted,
          findViewer: () => findViewer(wanted.userId),
          radios: names(),
        })
        open.set(name, { radio, key: JSON.stringify(wanted), port })
      }
    },
    infos: () => new Map([...open].map(([name, { port }]) => [name, port.info()])),
    async close() {
      for (const [name, one] of open) close(name, one)
      await closing
    },
  }
}
