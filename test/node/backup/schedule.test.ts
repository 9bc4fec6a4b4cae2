import { expect, test } from 'vitest'
import { backupNameAt, isBackupName } from '../../../src/app/system/backup/format/names.ts'
import { nextRun, type ScheduleState } from '../../../src/app/system/backup/next-run.ts'

const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 24 * HOUR
const at = (iso: string) => Date.parse(iso)
const state = (timeZone: string, time: string, more: Partial<ScheduleState> = {}): ScheduleState => ({
  timeZone,
  time,
  since: 0,
  succeededAt: null,
  failed: null,
  ...more,
})

/** The runs of a service that is always up, from a given moment. */
function runs(timeZone: string, time: string, from: string, count: number): string[] {
  const all: string[] = []
  let succeededAt: number | null = null
  for (let now = at(from); all.length < count;) {
    now = nextRun(now, state(timeZone, time, { since: at(from), succeededAt }))
    succeededAt = now
    all.push(new Date(now).toISOString().slice(0, 16))
  }
  return all
}

test.each([
  ['no change', 'UTC', '03:00', '2026-05-01T00:00Z', ['2026-05-01T03:00', '2026-05-02T03:00', '2026-05-03T03:00']],
  // Clocks go from 02:00 to 03:00 on 29 March.
  [
    'a gap',
    'Europe/Berlin',
    '02:30',
    '2026-03-28T00:00Z',
    ['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30'],
  ],
  [
    'the end of a gap',
    'Europe/Berlin',
    '03:00',
    '2026-03-28T00:00Z',
    ['2026-03-28T02:00', '2026-03-29T01:00', '2026-03-30T01:00'],
  ],
  // Clocks go from 03:00 back to 02:00 on 25 October.
  [
    'a fold',
    'Europe/Berlin',
    '02:30',
    '2026-10-24T00:00Z',
    ['2026-10-24T00:30', '2026-10-25T00:30', '2026-10-26T01:30'],
  ],
  [
    'after a fold',
    'Europe/Berlin',
    '03:00',
    '2026-10-24T00:00Z',
    ['2026-10-24T01:00', '2026-10-25T02:00', '2026-10-26T02:00'],
  ],
  [
    'a gap of half an hour',
    'Australia/Lord_Howe',
    '02:15',
    '2026-10-02T15:00Z',
    ['2026-10-02T15:45', '2026-10-03T15:30', '2026-10-04T15:15'],
  ],
  [
    'a fold of half an hour',
    'Australia/Lord_Howe',
    '01:45',
    '2026-04-03T12:00Z',
    ['2026-04-03T14:45', '2026-04-04T14:45', '2026-04-05T15:15'],
  ],
  [
    'a gap at midnight',
    'Africa/Cairo',
    '00:00',
    '2026-04-22T12:00Z',
    ['2026-04-22T22:00', '2026-04-23T22:00', '2026-04-24T21:00'],
  ],
  [
    'a fold at midnight',
    'America/Havana',
    '00:30',
    '2026-10-31T00:00Z',
    ['2026-10-31T04:30', '2026-11-01T04:30', '2026-11-02T05:30'],
  ],
  [
    'a day that was skipped',
    'Pacific/Apia',
    '03:00',
    '2011-12-29T00:00Z',
    ['2011-12-29T13:00', '2011-12-30T13:00', '2011-12-31T13:00'],
  ],
  [
    'a leap day',
    'America/New_York',
    '23:59',
    '2028-02-28T12:00Z',
    ['2028-02-29T04:59', '2028-03-01T04:59', '2028-03-02T04:59'],
  ],
])('once a day: %s', (_what, timeZone, time, from, expected) => {
  expect(runs(timeZone, time, from, expected.length)).toStrictEqual(expected)
})

test.each(['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'America/Santiago', 'Asia/Kathmandu', 'UTC'])(
  'a year in %s has a run on each of its days',
  (timeZone) => {
    const day = new Intl.DateTimeFormat('sv-SE', { timeZone })
    for (const time of ['00:00', '02:30', '23:59']) {
      const days = runs(timeZone, time, '2026-01-01T12:00Z', 365).map((run) => day.format(at(`${run}Z`)))
      expect(new Set(days).size).toBe(365)
      expect(days.every((day, i) => i === 0 || at(day) - at(days[i - 1] ?? '') === DAY)).toBe(true)
    }
  },
)

const last = at('2026-05-10T03:00Z')

test.each([
  ['a missed run is due at once', '2026-05-11T08:00Z', { succeededAt: last }, '2026-05-11T08:00Z'],
  [
    'several missed runs become one',
    '2026-05-20T08:00Z',
    { succeededAt: at('2026-05-20T07:59Z') },
    '2026-05-21T03:00Z',
  ],
  [
    'a late run counts for the same day',
    '2026-05-11T02:51Z',
    { succeededAt: at('2026-05-11T02:50Z') },
    '2026-05-12T03:00Z',
  ],
  ['the run of today is done', '2026-05-10T03:00:01Z', { succeededAt: last }, '2026-05-11T03:00Z'],
  [
    'the run of today is done, and the clock was set back before it',
    '2026-05-10T02:00Z',
    { succeededAt: last },
    '2026-05-11T03:00Z',
  ],
  [
    'times before the schedule existed are not missed',
    '2026-05-10T14:00Z',
    { since: at('2026-05-10T14:00Z') },
    '2026-05-11T03:00Z',
  ],
  [
    'a schedule that is switched on after the run of today starts tomorrow',
    '2026-05-10T02:00Z',
    { since: at('2026-05-10T02:00Z'), succeededAt: at('2026-05-10T01:00Z') },
    '2026-05-11T03:00Z',
  ],
  [
    'a failed run is retried after five minutes',
    '2026-05-11T03:01Z',
    { succeededAt: last, failed: { at: at('2026-05-11T03:00Z'), count: 1 } },
    '2026-05-11T03:05Z',
  ],
  [
    'a run that failed twice is retried after ten minutes',
    '2026-05-11T03:06Z',
    { succeededAt: last, failed: { at: at('2026-05-11T03:05Z'), count: 2 } },
    '2026-05-11T03:15Z',
  ],
  [
    'after many failures a run is retried each hour',
    '2026-05-11T09:10Z',
    { succeededAt: last, failed: { at: at('2026-05-11T09:00Z'), count: 50 } },
    '2026-05-11T10:00Z',
  ],
  [
    'a failure from before the schedule does not count',
    '2026-05-11T09:10Z',
    { succeededAt: last, since: at('2026-05-11T09:05Z'), failed: { at: at('2026-05-11T09:00Z'), count: 1 } },
    '2026-05-12T03:00Z',
  ],
])('%s', (_what, now, more, expected) => {
  expect(new Date(nextRun(at(now), state('UTC', '03:00', more)))).toStrictEqual(new Date(expected))
})

test('a run after midnight for the previous day does not replace that of the new day', () => {
  const succeededAt = at('2026-05-11T00:05Z')
  expect(nextRun(succeededAt + MINUTE, state('UTC', '23:58', { succeededAt }))).toBe(at('2026-05-11T23:58Z'))
})

test.each([
  ['2026-01-15_120000', true],
  ['2024-02-29_235959', true],
  ['2026-02-29_000000', false],
  ['2026-13-01_000000', false],
  ['2026-04-31_000000', false],
  ['2026-01-15_240000', false],
  ['2026-01-15_126000', false],
  ['2026-01-15_120060', false],
  ['0000-01-01_000000', false],
  ['2026-01-15_120000\n', false],
  [' 2026-01-15_120000', false],
  ['2026-01-15_120000/', false],
  ['٢٠٢٦-01-15_120000', false],
  ['', false],
])('%j is a valid name: %s', (name, expected) => {
  expect(isBackupName(name)).toBe(expected)
})

test('names are in local time, also with unusual offsets', () => {
  expect(backupNameAt(at('2026-01-15T23:00:00Z'), 'Europe/Berlin')).toBe('2026-01-16_000000')
  expect(backupNameAt(at('2026-01-15T18:15:09.999Z'), 'Asia/Kathmandu')).toBe('2026-01-16_000009')
  expect(backupNameAt(at('2026-01-15T00:00:00Z'), 'UTC')).toBe('2026-01-15_000000')
})
