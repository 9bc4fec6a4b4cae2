import * as z from 'zod'
import type { Store } from '../../../../db/store.ts'
import { type View, viewKey } from '../../../accounts/access/visible.ts'
import { audit, type AuditContext } from '../../../audit/audit.ts'
import type { Ctx, Viewer } from '../../../base/context.ts'
import { nextTurn } from '../../../base/pacing/next-turn.ts'
import { AppError } from '../../../http/errors.ts'
import { timeField } from '../../../http/fields.ts'
import { wordsFor } from '../../../words/reader.ts'
import { keepBodies } from '../../nodes/list/body-cache.ts'
import { type SerialisedNode, serialiseSeen } from '../../nodes/list/serialised.ts'
import type { OpenMapArchive } from '../archive.ts'
import { type Area, boundsField, maxZoomField } from './area.ts'
import { type MapRegions, type RecordRegion, REGION_STATES } from './port.ts'
import { type Place, suggestArea } from './suggestion.ts'

const bytes = z.int().min(0)
const area = z.object({ bounds: boundsField, maxZoom: maxZoomField })

export const regionSchema = z
  .object({
    state: z
      .enum(REGION_STATES)
      .describe('`loading` and `failed`: the latest download. A map that was there before stays in use'),
    source: z
      .string()
      .describe('Host of the planet archive that is asked. Empty for viewers who may not change settings'),
    bounds: boundsField.nullable().describe('West, south, east, north of the map in use; null: there is none'),
    maxZoom: maxZoomField.describe('Of the map in use'),
    bytes: bytes.describe('Of the map in use'),
    t: timeField.nullable().describe('When the map in use was completed'),
    attribution: z.string().nullable().describe('Attribution of the map in use, plain text'),
    wanted: area.nullable().describe('The area of the download that runs or failed'),
    fetchedBytes: bytes.describe('What the download has fetched'),
    totalBytes: bytes.describe('What it fetches altogether; 0: not known yet'),
    problem: z.string().nullable().describe('Why the download failed. Null for viewers who may not change settings'),
    suggestion: area
      .nullable()
      .describe(
        'An area around the nodes that the viewer sees, without outliers. Null: no node has a position, or the viewer may not change settings',
      ),
  })
  .meta({ id: 'MapRegion', description: 'The detailed map of a region on this machine' })

export const regionSizeSchema = z.object({
  bytes: bytes.describe('Of the finished file'),
  tiles: z.int(),
  free: bytes.describe('What the map may take on the disk of this service'),
})

export const regionEndSchema = z.strictObject({
  what: z
    .enum(['download', 'map'])
    .describe('`download`: ends it and deletes what it fetched. `map`: deletes the map in use'),
})

/** Throws `unsupported_on_this_runtime`. */
function demandRegions({ mapRegions }: Pick<Ctx, 'mapRegions'>): MapRegions {
  if (mapRegions === null) throw new AppError('unsupported_on_this_runtime')
  return mapRegions
}

/** The state as the viewer may know it. */
export async function readRegion(ctx: Ctx): Promise<z.infer<typeof regionSchema>> {
  const { viewer } = ctx
  const found = await demandRegions(ctx).state()
  if (viewer === null || !viewer.permissions.settings.write) {
    return { ...found, source: '', problem: null, suggestion: null }
  }
  const problem = found.problem === null ? null : (await wordsFor(ctx)).translate(found.problem)
  return { ...found, problem, suggestion: await readSuggestion(ctx, viewer) }
}

/** Nodes that are read in one turn of the event loop. */
const SLICE = 500

const suggestions = keepBodies<Area | null>()

async function readSuggestion({ store }: Ctx, { view, permissions }: Viewer): Promise<Area | null> {
  return permissions.nodes.read ? suggestRegion(store, view) : null
}

/** An area around the nodes that a view shows; null: none has a position. */
export async function suggestRegion(store: Store, view: View): Promise<Area | null> {
  const { list, revision } = await serialiseSeen(store, view)
  return suggestions(store, revision, viewKey(view), async () => suggestArea(await readPlaces(list)))
}

async function readPlaces(list: readonly SerialisedNode[]): Promise<Place[]> {
  const places: Place[] = []
  for (const [n, { json }] of list.entries()) {
    if (n % SLICE === SLICE - 1) await nextTurn()
    const { position }: { position: Place | null } = JSON.parse(json)
    if (position !== null) places.push(position)
  }
  return places
}

/** Throws `map_refused`. */
export function measureRegion(ctx: Ctx, wanted: Area): Promise<z.infer<typeof regionSizeSchema>> {
  return demandRegions(ctx).measure(wanted)
}

/** Throws `map_in_progress`, `map_refused`. */
export function startRegion(ctx: Ctx, wanted: Area): Promise<void> {
  return demandRegions(ctx).start(wanted, recordAs(ctx))
}

/** Throws `not_found`, `map_in_progress`. */
export function endRegion(ctx: Ctx, what: z.infer<typeof regionEndSchema>['what']): Promise<void> {
  const regions = demandRegions(ctx)
  return what === 'map' ? regions.remove(recordAs(ctx)) : regions.cancel(recordAs(ctx))
}

/** The map of the region. The caller closes it. Throws `not_found`, `map_unavailable`. */
export function openRegion(ctx: Ctx): Promise<OpenMapArchive> {
  return demandRegions(ctx).open()
}

/** Writes the steps to the audit log: those of a request in the name of its user, the others as the service. */
export function recordAs(ctx: AuditContext): RecordRegion {
  return (step, details) => ctx.store.atomic([audit(ctx, 'map_region_updated', { step, ...details })])
}
