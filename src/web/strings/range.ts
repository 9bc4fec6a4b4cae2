import { catalog } from '../language.ts'

/** The control for the time that a page shows. */
export const rangeTexts = catalog('rangeTexts', {
  label: 'Time',
  names: {
    '1h': 'Last hour',
    '6h': 'Last 6 hours',
    '24h': 'Last 24 hours',
    '7d': 'Last 7 days',
    '30d': 'Last 30 days',
    '1y': 'Last year',
  },
  whole: 'Any time',
  custom: 'From … to …',
  from: 'From',
  to: 'To',
  incomplete: 'Enter a date and a time.',
  backwards: 'The end must be after the beginning.',
  refused: 'The address of this page has a time that does not exist. The page shows its usual time.',
})
