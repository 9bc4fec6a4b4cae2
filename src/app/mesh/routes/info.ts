import { CLOCK_STATES } from '../../base/pacing/clock.ts'
import { COLLECTOR_STATES, type CollectorInfo } from '../collector/state.ts'
import { LINK_STATES, type LinkInfo } from '../radios/radio.ts'
import { Hono } from 'hono'
import * as z from 'zod'
import { requirePermission } from '../../accounts/access/require.ts'
import { type AppEnv } from '../../base/context.ts'
import { answers } from '../../http/describe.ts'
import { shared } from '../../accounts/access/shared.ts'
import { seesNodes, type View, WHOLE_VIEW } from '../../accounts/access/visible.ts'
import { LATEST_PACKETS, listSources, MAX_SOURCES } from '../radios/sources.ts'
import { LINK_KINDS, SOURCE_KINDS } from '../../../shared/mesh/link-kinds.ts'
import { DOWNLINK_KINDS } from '../../../shared/mesh/downlink.ts'
import { nodeNumField, timeField } from '../../http/fields.ts'

const radioSchema = z
  .object({
    nodeNum: nodeNumField,
    firmwareVersion: z.string().nullable(),
    hwModel: z.string().nullable(),
    role: z.string().nullable(),
  })
  .meta({ id: 'RadioInfo', description: 'A radio of this service' })
const queueSchema = z.object({ free: z.int(), maxlen: z.int() }).describe("Places in the radio's own sending queue")
const linkStateSchema = z.object({
  state: z.enum(LINK_STATES),
  since: timeField,
  lastFrameAt: timeField.nullable(),
  reconnects: z.int(),
  reason: z.string().nullable(),
})
const linkSchema = linkStateSchema
  .extend({
    name: z.string(),
    kind: z.enum(LINK_KINDS),
    radio: radioSchema.nullable(),
    queue: queueSchema.nullable(),
    txEnabled: z
      .boolean()
      .nullable()
      .describe('Whether the radio may transmit, according to its settings; null: not reported'),
    notice: z
      .object({ at: timeField, level: z.string(), message: z.string() })
      .optional()
      .describe("Text of the radio's latest notification"),
  })
  .meta({ id: 'Link', description: 'The connection to a radio or a broker' })
const collectorSchema = z
  .object({
    target: z.string(),
    state: z
      .enum(COLLECTOR_STATES)
      .describe('waiting: retried soon; refused: fails until somebody changes the configuration'),
    waiting: z.int().describe('Messages that are not delivered yet'),
    lastDeliveredAt: timeField.nullable(),
    delivered: z.int().describe('Since the start'),
    dropped: z.int().describe('Dropped since the start'),
    filtered: z.int().describe('Left out since the start because of COLLECTOR_ONLY and COLLECTOR_SAMPLE_SECONDS'),
    reason: z.string().nullable(),
  })
  .describe('State of the delivery to another service; null if this service is not a collector')
const sourceSchema = z
  .object({
    name: z.string(),
    kind: z.enum(SOURCE_KINDS),
    localNodeNum: nodeNumField.nullable(),
    firmwareVersion: z.string().nullable(),
    lastReceivedAt: timeField.nullable().describe(`Null: it brought none of the latest ${LATEST_PACKETS} packets`),
    token: z
      .object({ id: z.int(), name: z.string(), owner: z.string() })
      .nullable()
      .describe("The API token that delivers a collector's source; only administrators see it"),
    sends: z
      .array(z.enum(DOWNLINK_KINDS))
      .describe('What the radio of a collector sends for this service; empty: its collector does not listen now'),
  })
  .describe('A radio, a broker, or a source that a collector delivers')
const infoSchema = z
  .object({
    version: z.string().describe('Of the service'),
    radio: radioSchema.nullable(),
    firmware: z.string().nullable(),
    link: linkStateSchema.nullable(),
    queue: queueSchema.nullable(),
    links: z.array(linkSchema),
    collector: collectorSchema.nullable(),
    sources: z.array(sourceSchema).describe(`The ${MAX_SOURCES} latest sources`),
    clock: z
      .object({ state: z.enum(CLOCK_STATES), confirmed: timeField })
      .optional()
      .describe(
        'Whether the clock of the machine is trusted, and the time from which ages are calculated when data is deleted',
      ),
  })
  .describe('All links, with the values of the first one; null without links, as always on the edge')
  .meta({ id: 'Info' })

export const infoRoutes = new Hono<AppEnv>().get(
  '/',
  shared('info', z.strictObject({}), infoForAnonymous),
  requirePermission('info', 'read'),
  answers('The radios, their links, and the sources of packets', { 200: infoSchema }),
  async (c) => {
    const { radio, store, version, clockWatch, viewer, now } = c.var.ctx
    const clock = clockWatch?.state()
    return c.json({
      version,
      ...describeLinks(radio?.links() ?? [], viewer.view),
      collector: describeCollector(radio?.collector() ?? null),
      sources: (await listSources(store, { withTokens: viewer.user.isAdmin, now: now() })).map((source) =>
        seesNodes(viewer.view, [source.localNodeNum])
          ? source
          : { ...source, localNodeNum: null, firmwareVersion: null },
      ),
      ...(clock && { clock: { state: clock.state, confirmed: Math.round(clock.confirmed) } }),
    })
  },
)

/** The answer for anonymous callers has nothing about the machine and the connections of the service. */
async function infoForAnonymous(): Promise<z.infer<typeof infoSchema>> {
  return { version: '', ...describeLinks([], WHOLE_VIEW), collector: null, sources: [] }
}

/** Of a radio that is hidden from the viewer there is only its connection. */
function describeLinks(
  links: readonly LinkInfo[],
  view: View,
): Omit<z.infer<typeof infoSchema>, 'version' | 'collector' | 'sources' | 'clock'> {
  const radioOf = ({ radio }: LinkInfo) => (seesNodes(view, [radio?.nodeNum ?? null]) ? radio : null)
  const [first] = links
  const radio = first === undefined ? null : radioOf(first)
  return {
    radio,
    firmware: radio?.firmwareVersion ?? null,
    link: first === undefined ? null : describeState(first),
    queue: first?.queue ?? null,
    links: links.map((link) => ({
      name: link.name,
      kind: link.kind,
      ...describeState(link),
      radio: radioOf(link),
      queue: link.queue,
      txEnabled: link.txEnabled,
      ...(link.notice === null ? {} : { notice: link.notice }),
    })),
  }
}

function describeCollector(info: CollectorInfo | null): z.infer<typeof collectorSchema> | null {
  if (info === null) return null
  const { target, state, waiting, lastDeliveredAt, delivered, dropped, filtered, reason } = info
  return { target, state, waiting, lastDeliveredAt, delivered, dropped, filtered, reason }
}

function describeState({ state, since, lastFrameAt, reconnects, reason }: LinkInfo) {
  return { state, since, lastFrameAt, reconnects, reason }
}
