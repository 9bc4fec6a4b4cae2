import type { NewEvent } from '../../mesh/live/event.ts'
import type { RemoteStep } from './port.ts'

/** An action stands differently. */
export function remoteEvent(
  { id, nodeNum, section }: { readonly id: string; readonly nodeNum: number; readonly section: string | null },
  { state, reason }: Pick<RemoteStep, 'state' | 'reason'>,
): NewEvent {
  return { kind: 'configuration', data: { nodeNum, section, id, state, reason }, nodes: [nodeNum] }
}
