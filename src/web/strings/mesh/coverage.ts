import { catalog } from '../../language.ts'
import { quantity } from '../quantity.ts'

export const coverageTexts = catalog('coverage', {
  title: 'Coverage',
  off: 'not shown',
  by: {
    bestSnr: 'Best SNR',
    medianSnr: 'Median SNR',
    bestRssi: 'Best RSSI',
    medianRssi: 'Median RSSI',
    hops: 'Fewest hops',
    age: 'Last heard',
  },
  colour: 'Coloured by',
  rssi: ['−90 dBm', '−105 dBm', '−120 dBm', 'weaker'],
  ages: ['day', 'week', 'month', 'older'],
  unknown: 'not heard directly',
  unknownHops: 'unknown',
  first: 'Press a cell for its numbers. A cell says how well positions that were sent from there were heard.',
  none: 'Nothing here yet: cells appear where positions were sent from and received.',
  nothing: 'No position was received from this place.',
  signal: (name: string, best: string, median: string) => `${name}: ${best} at best, median ${median}`,
  notDirect: 'No packet came directly.',
  hops: (fewest: string, most: string) => (fewest === most ? fewest : `${fewest} to ${most}`),
  packets: (n: number, direct: string) => `${quantity(n, 'position', 'positions')}, ${direct} directly`,
  size: (size: string) => `A cell about ${size} high`,
  middle: 'Middle of the map',
  close: 'Close',
})
