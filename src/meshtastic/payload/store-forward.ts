import { enumName } from '../enum-name.ts'
import {
  type StoreAndForward,
  StoreAndForward_RequestResponse,
  StoreAndForward_RequestResponseSchema,
} from '../gen/payloads_pb.ts'

/** A message from or to a store & forward server. */
export type StoreForward = {
  /** E.g. `ROUTER_HEARTBEAT`. */
  readonly request: string
  /** A repeated stored message. It is unknown when it was first sent. */
  readonly replay: { readonly text: string; readonly isDirect: boolean; readonly originalId: number | null } | null
}

export function decodeStoreForward(message: StoreAndForward): StoreForward {
  const { case: variant, value } = message.variant
  const isDirect = message.rr === StoreAndForward_RequestResponse.ROUTER_TEXT_DIRECT
  return {
    request: enumName(StoreAndForward_RequestResponseSchema, message.rr),
    replay:
      variant === 'text'
        ? { text: new TextDecoder().decode(value), isDirect, originalId: message.originalId || null }
        : null,
  }
}
