/** What somebody does with a node over the mesh. */
export const REMOTE_ACTIONS = ['read', 'change', 'reboot'] as const

/** The states of such an action while it lasts, in this order. */
export const OPEN_REMOTE_STATES = ['queued', 'waiting_for_key', 'sent', 'restarting'] as const

/** Its outcomes. */
const REMOTE_OUTCOMES = ['done', 'applied', 'differs', 'refused', 'timed_out', 'lost', 'unverified', 'failed'] as const

export const REMOTE_STATES = [...OPEN_REMOTE_STATES, ...REMOTE_OUTCOMES] as const
export type RemoteState = (typeof REMOTE_STATES)[number]
export type RemoteOutcome = (typeof REMOTE_OUTCOMES)[number]

const OPEN: ReadonlySet<RemoteState> = new Set(OPEN_REMOTE_STATES)

export function isOpenRemote(state: RemoteState): boolean {
  return OPEN.has(state)
}

/** Why an action ended as it did, or what is not known about it. */
export const REMOTE_REASONS = [
  // Answers of the node.
  'not_admin',
  'not_authorized',
  'bad_session',
  'no_response',
  'unknown_key',
  'node_error',
  // Our own radio.
  'cannot_encrypt',
  'duty_cycle',
  'radio_error',
  'radio_unavailable',
  // Before anything was changed.
  'silent',
  'unknown_section',
  'other_values',
  'old_firmware',
  // After the change was begun: `midway_open` if the node could not be told to restart without saving.
  'not_taken',
  'silent_midway',
  'midway_open',
  // After it was told to save.
  'not_back',
  'no_restart',
  'not_confirmed',
  'old_values',
  'unreadable',
  // The service was stopped.
  'stopped_before',
  'stopped_midway',
] as const
export type RemoteReason = (typeof REMOTE_REASONS)[number]
