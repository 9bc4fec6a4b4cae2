import { humanize } from '../../format.ts'
import { packetTexts } from '../../strings/mesh/packets.ts'

/** The content of a packet, in words; null: it could not be read. */
export function packetKind(portName: string | null): string {
  const names: Readonly<Record<string, string>> = packetTexts.kinds
  return portName === null ? packetTexts.unreadable : (names[portName] ?? humanize(portName.replace(/_APP$/, '')))
}
