import { type RadioProblem, RADIO_PROBLEMS } from '../../../shared/mesh/radio-problems.ts'
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

const codes: ReadonlyMap<string, RadioProblem> = new Map(
  namesOf(RADIO_PROBLEMS).map((code) => [RADIO_PROBLEMS[code], code]),
)

/** Why there is no connection to a radio, in the reader's language if the service has told a known problem. */
export function problemWords(reason: string): string {
  const code = codes.get(reason)
  return code === undefined ? reason : radioProblems[code]
}
