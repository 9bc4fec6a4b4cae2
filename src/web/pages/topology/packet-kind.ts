import { humanize } from '../../format.ts'
import { t } from '../../strings.ts'

/** The content of a packet, in words; null: it could not be read. */
export function packetKind(portName: string | null): string {
  const names: Readonly<Record<string, string>> = t.packets.kinds
  return portName === null ? t.packets.unreadable : (names[portName] ?? humanize(portName.replace(/_APP$/, '')))
}
