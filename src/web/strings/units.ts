import { catalog } from '../language.ts'

/** Lengths of time, short enough for a table. `#` stands for the number. */
export const unitTexts = catalog('unitTexts', {
  now: 'now',
  seconds: '# s',
  minutes: '# min',
  hours: '# h',
  days: '# d',
})
