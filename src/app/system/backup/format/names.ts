/** The file that lists the others of a backup, and is written last. */
export const MANIFEST = 'manifest.json'

const NAME = /^(\d{4})-(\d{2})-(\d{2})_(\d{2})(\d{2})(\d{2})$/

/** Whether a text is `YYYY-MM-DD_HHMMSS` of a day and a time that exist. */
export function isBackupName(text: string): boolean {
  const parts = NAME.exec(text)?.slice(1).map(Number)
  if (parts === undefined) return false
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts
  const date = new Date(Date.UTC(year, month - 1, day, hour, minute, second))
  // Date.UTC turns the 31st of April into the 1st of May, and reads years below 100 as 19xx.
  return (
    date.getUTCFullYear() === year &&
    date.getUTCMonth() === month - 1 &&
    date.getUTCDate() === day &&
    date.getUTCHours() === hour &&
    date.getUTCMinutes() === minute &&
    date.getUTCSeconds() === second
  )
}

/** The name of a backup made at `at`, in local time. */
export function backupNameAt(at: number, timeZone: string): string {
  const [date = '', time = ''] = new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  })
    .format(at)
    .split(' ')
  return `${date}_${time.replaceAll(':', '')}`
}
