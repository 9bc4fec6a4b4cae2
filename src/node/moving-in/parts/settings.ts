import { MAX_ACTIVE_SECONDS } from '../../../shared/limits.ts'
import { integerIn, textIn } from '../source/row.ts'
import type { Job } from '../job.ts'

/** What is stored beside the settings that somebody made. */
const OWN_STATE =
  /^(?:migration_|route_segments_migration|setup_complete|vapid_|local(?:Device|Node)|lora\.preset|position_estimation|localNode|session)/

const SECONDS_PER_HOUR = 3600

/** The units that the users of the file read; null: metric. */
export function readUnits({ source }: Job): string | null {
  const of = (key: string) => source.one('select value from settings where key = ?', key)?.['value']
  return of('temperatureUnit') === 'F' && of('distanceUnit') === 'mi' ? 'imperial' : null
}

/** Takes the settings that fit and that nobody has set here; the others are counted by name. */
export async function importSettings(job: Job): Promise<void> {
  const { source, tally, writer, ctx, now } = job
  for (const row of source.rows('settings', ['key', 'value'], 'order by key')) {
    const key = textIn(row, 'key') ?? ''
    if (OWN_STATE.test(key)) continue
    tally.found('settings')
    const hours = key === 'maxNodeAgeHours' ? integerIn(row, 'value') : null
    if (hours === null || hours < 1) {
      if (key !== 'temperatureUnit' && key !== 'distanceUnit') tally.lost('settings', key.replace(/^source:[^:]+:/, ''))
      continue
    }
    const value = JSON.stringify(Math.min(MAX_ACTIVE_SECONDS, hours * SECONDS_PER_HOUR))
    const added = await writer.each([value], (one) => {
      const insert = ctx.store.sqlite.prepare('insert into settings values (?, ?, ?) on conflict do nothing')
      return insert.run('nodeActiveSeconds', one, now).changes > 0
    })
    tally.added('settings', added)
  }
}
