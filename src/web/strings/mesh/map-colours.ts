import { catalog } from '../../language.ts'

/** The names of the scales are short, for one line. `help` says it in full, in the order of the colours. */
export const colourTexts = catalog('mapColours', {
  unknown: 'unknown',
  snr: {
    names: ['0 dB', '−7 dB', '−15 dB', 'weaker'],
    help: ['SNR of 0 dB or better', 'SNR of −7 dB or better', 'SNR of −15 dB or better', 'weaker: SNR below −15 dB'],
    unknown: 'unknown: no packet was heard directly',
  },
  hops: {
    names: ['0', '1', '2', '3', '4+'],
    help: [
      'heard directly',
      'one node in between',
      'two nodes in between',
      'three nodes in between',
      'four nodes or more in between',
    ],
    unknown: 'unknown: the packets did not say it',
  },
  battery: {
    names: ['power', '50 %', '20 %', 'empty'],
    help: ['external power', 'battery at 50 % or more', 'battery at 20 % or more', 'empty: battery below 20 %'],
    unknown: 'unknown: the node has not sent it',
  },
  role: {
    names: ['relay', 'client', 'quiet', 'tracker', 'TAK'],
    help: [
      'relay: routers, repeaters and base stations',
      'client: Client',
      'quiet: Client Mute and Client Hidden',
      'tracker: trackers, sensors, Lost and Found',
      'TAK: TAK and TAK Tracker',
    ],
    unknown: 'unknown: the node has not sent it',
  },
})
