import { type Clock, systemClock } from '../../clock.ts'
import { browseRadios, type MulticastOptions } from './browse.ts'
import { listSerialDevices } from './serial-devices.ts'

/** A radio, or what may be one. Everything but `kind` is its own claim, cleaned for people to read. */
export type FoundRadio = {
  readonly kind: 'tcp' | 'serial'
  /** `host:port`, or the path of a device. */
  readonly address: string
  readonly name: string
  /** E.g. `!a0cb0001`. */
  readonly nodeId: string | null
}

export type FindOptions = MulticastOptions & { readonly clock?: Clock }

/** The radios in the local network that announce themselves within 3 s, and the serial devices of this machine. */
export async function findRadios({ clock = systemClock, ...multicast }: FindOptions = {}): Promise<FoundRadio[]> {
  const [announced, devices] = await Promise.all([browseRadios(clock, multicast), listSerialDevices()])
  return [
    ...announced.map(({ address, name, nodeId }) => ({ kind: 'tcp' as const, address, name, nodeId })),
    ...devices.map(({ device, name }) => ({ kind: 'serial' as const, address: device, name, nodeId: null })),
  ]
}
