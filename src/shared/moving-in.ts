import { namesOf } from './names.ts'

/** What an import counts, as people read it. */
export const IMPORTED = {
  users: 'Users',
  channels: 'Channels',
  nodes: 'Nodes',
  messages: 'Messages',
  measurements: 'Measurements',
  positions: 'Positions',
  traceroutes: 'Traceroutes',
  neighbors: 'Neighbours',
  waypoints: 'Waypoints',
  settings: 'Settings',
} as const
export type Imported = keyof typeof IMPORTED
export const IMPORTED_NAMES = namesOf(IMPORTED)

/** What an import from MeshMonitor leaves out, or takes in another form, and why: after a number. */
export const LOSSES = {
  sources_empty: 'sources without any data: rights on them do not count',
  other_protocols: 'sources or rows of MeshCore or Reticulum',
  users_bad_name: 'users with a name that is not possible here',
  users_without_issuer: 'users of an OpenID provider: import again with --oidc-issuer',
  users_other_sign_in: 'users who sign in by a proxy',
  users_without_password:
    'users without a usable password, or with the first one of MeshMonitor: an administrator resets it, or the console with reset-password',
  users_present: 'users whose name or sign-in exists here: kept as they are here',
  recovery_codes: 'users whose recovery codes end: they make new ones on their account page',
  api_tokens: 'API tokens: their owners make new ones',
  sessions: 'sessions: their owners sign in again',
  push_subscriptions: 'push subscriptions: their owners subscribe again',
  notification_preferences: 'settings for notifications: their owners make alert rules',
  keys: 'keys of channels: import again with --with-keys, or connect a radio that has them',
  times_future: 'times in the future or before 2020',
  nodes_deleted_here: 'nodes that somebody deleted here',
  nodes_not_hidden: 'nodes that are hidden in MeshMonitor and not here',
  position_overrides: 'positions that somebody set by hand: the nodes have those that they reported',
  messages_old: 'messages older than the setting keeps: raise it first to have them',
  messages_future: 'messages with a time in the future or before 2020',
  messages_traceroutes: 'messages that describe a traceroute: the traceroutes are imported',
  messages_not_texts: 'messages that are no texts',
  measurements_derived: 'values that MeshMonitor works out, or keeps beside positions',
  measurements_unknown: 'measurements with a name that is unknown here',
  measurements_without_node: 'measurements of nodes that MeshMonitor does not list any more',
  measurements_bad_time: 'measurements with a time in the future or before 2020, or without a value',
  measurements_twice: 'measurements of one packet from two sources, or of one moment: taken once',
  positions_old: 'positions older than the setting keeps: raise it first to have them',
  positions_incomplete: 'positions without latitude or longitude',
  traceroutes_unanswered: 'traceroutes without an answer',
  neighbors_older: 'neighbours of earlier reports: only the latest report of a node counts',
  waypoints_virtual: 'virtual waypoints',
  waypoints_incomplete: 'waypoints without sender, time or place',
  automations: 'automations: to be made again on the page Automation; none is switched on',
  settings: 'settings without a counterpart',
  packet_log: 'packets of the packet log',
} as const
export type Loss = keyof typeof LOSSES
export const LOSS_NAMES = namesOf(LOSSES)

/** What became of a user of the file. */
export const USER_OUTCOMES = {
  added: 'added',
  present: 'exists here, unchanged',
  left_out: 'left out',
  proposal: 'not a user here: decide about public access under Settings, which stays off',
} as const
export type UserOutcome = keyof typeof USER_OUTCOMES
export const USER_OUTCOME_NAMES = namesOf(USER_OUTCOMES)
