type Quiet = {
  readonly timeZone: string
  readonly quietHours: { readonly from: string; readonly to: string } | null
}

/** Whether a moment is in the quiet hours of a rule. */
export function quietAt({ quietHours, timeZone }: Quiet): (t: number) => boolean {
  if (quietHours === null) return () => false
  const { from, to } = quietHours
  const timeOf = localTime(timeZone)
  return (t) => {
    const time = timeOf(t)
    return from < to ? from <= time && time < to : from <= time || time < to
  }
}

/** HH:MM of a moment. */
export function localTime(timeZone: string): (t: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
  return (t) => format.format(t)
}

/** YYYY-MM-DD of a moment. */
export function localDate(timeZone: string): (t: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone })
  return (t) => format.format(t)
}
