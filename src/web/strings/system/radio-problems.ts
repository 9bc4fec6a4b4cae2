import { LINK_REASONS } from '../../../shared/mesh/link-reasons.ts'
import { RADIO_PROBLEMS } from '../../../shared/mesh/radio-problems.ts'
import { namesOf } from '../../../shared/names.ts'
import { catalog } from '../../language.ts'

// The compiler holds these to the sentences of the service.
export const radioProblems = catalog('radioProblems', {
  unknown_name: 'the host name is not known: check its spelling, or use the IP address',
  unreachable: 'nothing answers at this address: check the address, and that the radio is on and in this network',
  refused:
    'the host answers, but not on this port: check the port (4403 for TCP), and that the radio has network access switched on',
  no_device:
    'there is no such serial device: plug it in, and choose it by its name under /dev/serial/by-id; a container needs --device',
  no_permission:
    "the service may not open the serial device: add its user to the device's group, usually dialout, and restart the service",
  in_use: 'another program has the serial device open: close that program',
  no_serial_port: 'this is no serial port: choose one under /dev/serial/by-id',
  no_serial_support:
    'serial ports cannot be used on this machine: reinstall the service, or connect the radio by the network',
  certificate_changed:
    "the radio's certificate has changed, as after a factory reset: if you expected that, accept the new one; otherwise another device answers at this address",
  no_tls: 'the radio does not speak TLS on this port: use an address that begins with http://',
  no_answer:
    'the device accepts the connection and says nothing: check that it is a Meshtastic radio, and that its serial or network access is switched on',
  not_a_radio: 'the device answers, but is no Meshtastic radio: check address and port',
  meshcore:
    'this is a MeshCore radio: only Meshtastic radios can be connected; flash Meshtastic or choose another device',
  rnode:
    'this is an RNode (Reticulum): only Meshtastic radios can be connected; flash Meshtastic or choose another device',
  old_firmware: "the radio's firmware is too old: update it to 2.3 or later",
  busy: 'the radio closes the connection at once: another client holds it; close that app',
  locked: 'the radio is locked (lockdown): unlock it in the app',
  unfinished: 'the radio begins to answer and does not finish: restart it, and move a remote client nearer',
} as const satisfies typeof RADIO_PROBLEMS)

export const linkReasons = catalog('linkReasons', {
  refused: 'the radio refuses connections',
  reset: 'the radio reset the connection',
  closed: 'the radio closed the connection',
  unanswered: 'the radio does not answer',
  unreached: 'the radio cannot be reached',
  no_network: 'the network cannot be reached',
  unknown_host: "the radio's host name is not known",
  no_lookup: "the radio's host name cannot be looked up",
  stalled: 'the handshake has stalled',
  silent: 'the radio has gone silent',
  unplugged: 'the radio was unplugged, or closed the connection',
  restarts: 'the radio restarts',
  restarted: 'the radio has restarted, and the connection ended again',
  taken: 'another client holds this radio',
  locked: 'the radio is locked (lockdown): unlock it in the app; until then its settings are unknown here',
  reading: 'reading settings and nodes',
  away: 'it may be restarting',
  takes_nothing: 'the radio does not take what is sent to it',
  broker_refused: 'the broker refuses connections',
  broker_reset: 'the broker reset the connection',
  broker_closed: 'the broker closed the connection',
  broker_unanswered: 'the broker does not answer',
  broker_unreached: 'the broker cannot be reached',
  broker_unknown: "the broker's host name is not known",
  broker_failed: 'the connection to the broker failed',
  broker_authority:
    "the broker's certificate was issued by an unknown authority; add the authority's certificate to the connection",
  broker_expired: "the broker's certificate has expired",
  broker_early: "the broker's certificate is not valid yet; is the clock of this machine right?",
  broker_other: "the broker's certificate is for another host name",
  broker_changed:
    "the broker's certificate is not the one that is pinned: if its owner renewed it, pin the new one; otherwise another server answers at this address",
  broker_no_tls: 'the broker does not speak TLS on this port',
  broker_client: 'the broker refuses the client id',
  broker_away: 'the broker is not available',
  broker_password: 'the broker refuses the user name or password',
  no_multicast: 'no network accepts multicast: this machine needs one; a container needs the network of its host',
  udp_taken: 'another program uses the UDP port alone',
  udp_forbidden: 'the system does not let the service listen to multicast',
} as const satisfies typeof LINK_REASONS)

const words: ReadonlyMap<string, string> = new Map([
  ...namesOf(RADIO_PROBLEMS).map((code) => [RADIO_PROBLEMS[code], radioProblems[code]] as const),
  ...namesOf(LINK_REASONS).map((code) => [LINK_REASONS[code], linkReasons[code]] as const),
])

/** Why a radio or broker is not connected, in the reader's language as far as the service has told a known reason. */
export function problemWords(reason: string): string {
  const whole = words.get(reason)
  if (whole !== undefined) return whole
  return reason
    .split('; ')
    .map((part) => words.get(part) ?? part)
    .join('; ')
}
