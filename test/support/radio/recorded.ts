import { fromBinary } from '@bufbuild/protobuf'
import { FromRadioSchema } from '../../../src/meshtastic/gen/stream_pb.ts'
import { readRecordings } from '../../meshtastic/recordings.ts'
import { fromRadio } from './device.ts'

/** What one radio sent: up to the end of its handshake, which ends with the nonce of the request, and from there. */
export function readRadio(source: string) {
  const all = readRecordings('fromradio').filter((each) => each.source === source)
  const variants = all.map(({ bytes }) => fromBinary(FromRadioSchema, bytes).payloadVariant.case)
  const end = variants.indexOf('configCompleteId')
  const bytes = all.map((each) => each.bytes)
  return {
    handshake: (nonce: number) => [...bytes.slice(0, end), fromRadio({ case: 'configCompleteId', value: nonce })],
    packets: bytes.slice(end + 1),
  }
}
