import { toBinary } from '@bufbuild/protobuf'
import { UserSchema } from '../../../meshtastic/gen/payloads_pb.ts'
import type { FromRadio } from '../../../meshtastic/gen/stream_pb.ts'

/** What a radio calls itself, in the form in which it tells others. */
export type OwnUser = {
  take(message: FromRadio): void
  /** An encoded `User`; null: the radio has not reported it. */
  read(): Uint8Array | null
}

export function createOwnUser(): OwnUser {
  let own: number | null = null
  let user: Uint8Array | null = null
  return {
    take({ payloadVariant: { case: variant, value } }) {
      if (variant === 'myInfo') {
        if (value.myNodeNum !== own) user = null
        own = value.myNodeNum
      }
      if (variant === 'nodeInfo' && value.num === own && value.user !== undefined) {
        user = toBinary(UserSchema, value.user)
      }
    },
    read: () => user,
  }
}
