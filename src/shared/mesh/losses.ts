/** What can be lost with a node that is changed over the mesh, where nobody is beside it. */
export const LOSSES = ['contact', 'transmission', 'answers', 'control', 'network', 'sleep', 'role'] as const
export type Loss = (typeof LOSSES)[number]

type Losing = { readonly loss: Loss; readonly when?: (value: unknown) => boolean }

const isOff = (value: unknown) => value === false
const isOn = (value: unknown) => value === true
const CONTACT: Losing = { loss: 'contact' }
const CONTROL: Losing = { loss: 'control' }
const NETWORK: Losing = { loss: 'network' }

/** By section and path; `when` is asked about the new value. */
const LOSING: Readonly<Record<string, Losing>> = {
  'lora.region': CONTACT,
  'lora.usePreset': CONTACT,
  'lora.modemPreset': CONTACT,
  'lora.bandwidth': CONTACT,
  'lora.spreadFactor': CONTACT,
  'lora.codingRate': CONTACT,
  'lora.frequencyOffset': CONTACT,
  'lora.overrideFrequency': CONTACT,
  'lora.channelNum': CONTACT,
  'lora.txEnabled': { loss: 'transmission', when: isOff },
  'lora.hopLimit': { loss: 'answers', when: (value) => value === 0 },
  'channels.0.role': CONTACT,
  // The primary channel decides about the frequency slot.
  'channels.0.settings.name': CONTACT,
  'channels.0.settings.psk': CONTACT,
  'security.adminKey': CONTROL,
  'security.isManaged': { loss: 'control', when: isOn },
  'security.adminChannelEnabled': { loss: 'control', when: isOff },
  'security.packetSignaturePolicy': CONTACT,
  // The radio of a licensed operator neither encrypts nor decrypts direct messages.
  'owner.isLicensed': { loss: 'control', when: isOn },
  'network.wifiEnabled': { loss: 'network', when: isOff },
  'network.ethEnabled': { loss: 'network', when: isOff },
  'network.wifiSsid': NETWORK,
  'network.wifiPsk': NETWORK,
  'power.isPowerSaving': { loss: 'sleep', when: isOn },
  'device.role': { loss: 'role' },
}

/** What a change of a setting to this value can lose; null: nothing. A secret has no value here. */
export function lossOf(section: string, path: string, value: unknown): Loss | null {
  const found = LOSING[section === 'channels' ? path : `${section}.${path}`]
  if (found === undefined || found.when?.(value) === false) return null
  return found.loss
}
