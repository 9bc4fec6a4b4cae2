import { catalog } from '../../language.ts'

export const quietTexts = catalog('quietTexts', {
  title: 'Quiet hours',
  help: 'No alerts are sent to you in this time. They follow in one message when it ends.',
  on: 'Keep quiet hours',
  from: 'From',
  to: 'Until',
  days: 'Days',
  daysHint: 'A time across midnight belongs to the day on which it begins.',
  timeZone: 'Time zone',
  sameTimes: 'Two different times, such as 22:00 and 07:00',
  noDay: 'At least one day',
  applies: (until: string) => `They apply now, until ${until}.`,
  exceptions: 'Sent at once even then: rules that you mark as urgent, and news about your account.',
})
