import type { Ctx } from '../../app/base/context.ts'
import { WHOLE_VIEW } from '../../app/accounts/access/visible.ts'
import { AppError } from '../../app/http/errors.ts'
import { type Area, areaSchema } from '../../app/mesh/map/region/area.ts'
import { recordAs, suggestRegion } from '../../app/mesh/map/region/region.ts'
import { createProgressBar } from '../backup/progress-bar.ts'
import { systemClock } from '../clock.ts'
import { type NodeRegions, openRegions } from '../map/region/regions.ts'

export const MAP_USAGE = `  map fetch [--bounds <west>,<south>,<east>,<north>] [--zoom <0-15>] [--dry-run]
                              download a detailed map of a region from the planet archive in MAP_ARCHIVE_URL; without
                              --bounds, of the region around the nodes; --dry-run: only say how large it is. If it is
                              interrupted, the same command or a running service continues it
  map remove                  delete this map
`

const SHOW_MS = 200
const MEGABYTE = 1_000_000

type Asked = { bounds: string | null; zoom: number | null; isDry: boolean }

/** Returns the exit code. */
type MapCommand = (ctx: Ctx) => Promise<number>

/** The command in all arguments after `map`; null if they are invalid. */
export function readMapCommand([name, ...rest]: readonly string[]): MapCommand | null {
  if (name === 'remove') return rest.length === 0 ? remove : null
  if (name !== 'fetch') return null
  const asked: Asked = { bounds: null, zoom: null, isDry: false }
  for (let i = 0; i < rest.length; i++) {
    const [option, value = ''] = [rest[i], rest[i + 1]]
    if (option === '--dry-run' && !asked.isDry) asked.isDry = true
    else if (option === '--bounds' && asked.bounds === null && /^-?[\d.]+(?:,-?[\d.]+){3}$/.test(value)) {
      asked.bounds = value
      i++
    } else if (option === '--zoom' && asked.zoom === null && /^\d{1,2}$/.test(value)) {
      asked.zoom = Number(value)
      i++
    } else return null
  }
  return (ctx) => fetchMap(ctx, asked)
}

function regionsOf(ctx: Ctx): NodeRegions {
  return openRegions({ config: ctx.config, log: ctx.log, clock: systemClock, record: recordAs(ctx) })
}

async function fetchMap(ctx: Ctx, asked: Asked): Promise<number> {
  const regions = regionsOf(ctx)
  const area = await areaOf(ctx, asked)
  const { source } = await regions.state()
  process.stdout.write(`Region ${area.bounds.join(',')} up to zoom level ${area.maxZoom}, from ${source}\n`)
  if (asked.isDry) {
    const { bytes, tiles, free } = await regions.measure(area)
    process.stdout.write(`${sizeOf(bytes)}, ${tiles} tiles; ${sizeOf(free)} of the disk may be used\n`)
    return 0
  }
  await regions.start(area, recordAs(ctx))
  const bar = createProgressBar(process.stderr, 'bytes')
  const ticker = setInterval(() => {
    void regions.state().then(({ fetchedBytes, totalBytes }) => bar.show(fetchedBytes, totalBytes))
  }, SHOW_MS)
  await regions.idle()
  clearInterval(ticker)
  bar.end()
  const { problem, bytes } = await regions.state()
  if (problem !== null) throw new AppError('map_refused', problem)
  process.stdout.write(`Complete: ${sizeOf(bytes)}\n`)
  return 0
}

async function areaOf({ store }: Ctx, { bounds, zoom }: Asked): Promise<Area> {
  const suggested = bounds === null ? await suggestRegion(store, WHOLE_VIEW) : null
  if (bounds === null && suggested === null) {
    throw new AppError('invalid_request', 'No node has a position: name the region with --bounds')
  }
  const given = bounds === null ? suggested?.bounds : bounds.split(',').map(Number)
  const parsed = areaSchema.safeParse({ bounds: given, maxZoom: zoom ?? suggested?.maxZoom ?? 15 })
  if (parsed.success) return parsed.data
  throw new AppError('invalid_request', parsed.error.issues[0]?.message)
}

async function remove(ctx: Ctx): Promise<number> {
  await regionsOf(ctx).remove(recordAs(ctx))
  process.stdout.write('The map of the region is deleted\n')
  return 0
}

function sizeOf(bytes: number): string {
  if (bytes < MEGABYTE) return `${Math.ceil(bytes / 1000)} kB`
  return `${(bytes / MEGABYTE).toLocaleString('en', { maximumFractionDigits: 1 })} MB`
}
