import { type FromRadio, LockdownStatus_State as State } from '../gen/stream_pb.ts'

/** Follows one connection to a radio that may be locked (firmware 2.8, lockdown). */
export type Lockdown = {
  /** Takes each message in order. True for one that a locked radio has emptied, so that nothing in it is real. */
  take(message: FromRadio): boolean
  isLocked(): boolean
}

/**
 * A locked radio reveals nothing to a client without its passphrase: it sends channels, settings and metadata, but
 * empty. It reports only afterwards that it is locked, so the first sign is metadata without a firmware version.
 */
export function createLockdown(): Lockdown {
  let isEmptied = false
  let isSaid = false
  const isLocked = () => isEmptied || isSaid
  return {
    isLocked,
    take({ payloadVariant: { case: variant, value } }) {
      if (variant === 'metadata') isEmptied = value.firmwareVersion === ''
      if (variant === 'lockdownStatus') {
        isSaid = LOCKED.has(value.state)
        isEmptied &&= isSaid
      }
      return isLocked() && variant !== undefined && EMPTIED.has(variant)
    },
  }
}

const LOCKED: ReadonlySet<State> = new Set([State.NEEDS_PROVISION, State.LOCKED, State.UNLOCK_FAILED])
const EMPTIED: ReadonlySet<string> = new Set([
  'metadata',
  'channel',
  'config',
  'moduleConfig',
  'deviceuiConfig',
  'configCompleteId',
])
