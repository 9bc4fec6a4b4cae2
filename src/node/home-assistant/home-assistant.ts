import type { Ports } from '../../app/base/context.ts'
import { readPublishedNodes } from '../../app/mesh/nodes/published.ts'
import { readSettings } from '../../app/settings/settings.ts'
import type { Config } from '../../app/config/config.ts'
import { MINUTE_MS, SECOND_MS } from '../../shared/time.ts'
import { type Clock, createTimer } from '../clock.ts'
import { readAuthorities } from '../radio/mqtt/mqtt.ts'
import { createBroker } from './broker.ts'
import { discoveryOf, stateOf, topicsOf } from './entities.ts'

/** Nodes that are published: each is a device of Home Assistant with up to four entities. */
const MAX_NODES = 500
/** Messages a second. */
const RATE = 20
/** Messages that wait for the broker's confirmation; further ones wait here. */
const MAX_UNCONFIRMED = 100
/** What others left at our topics, at most. */
const MAX_FOUND = 10_000

const TIMINGS = {
  /** How often a node's values are published at most. */
  refreshMs: MINUTE_MS,
  sendMs: SECOND_MS,
}

type Needs = Pick<Ports, 'config' | 'store' | 'providers' | 'log' | 'now' | 'version'> & {
  readonly clock: Clock
  readonly random?: () => number
  readonly timings?: Partial<typeof TIMINGS>
}

/** What begins to publish; null: HOME_ASSISTANT_MQTT_URL is not set. Throws StartRefused for an unreadable CA. */
export function openHomeAssistant(config: Config): ((needs: Needs) => { stop(): Promise<void> }) | null {
  const { HOME_ASSISTANT_MQTT_URL: url, HOME_ASSISTANT_MQTT_CA: file } = config
  if (url === null) return null
  const ca = file === null ? null : readAuthorities(file, 'HOME_ASSISTANT_MQTT_CA')
  return (needs) => startPublishing(needs, { url, ca })
}

/**
 * Keeps what the broker retains equal to what should be there: a discovery message and a state for each node that the
 * viewer may see. What is no longer among them is deleted, also what an earlier process left.
 */
function startPublishing(
  needs: Needs,
  { url, ca }: { readonly url: string; readonly ca: string | null },
): { stop(): Promise<void> } {
  const { config, log, clock, version, random = Math.random } = needs
  const { HOME_ASSISTANT_TOPIC: topic, HOME_ASSISTANT_PREFIX: prefix, HOME_ASSISTANT_VIEWER: viewer } = config
  const timings = { ...TIMINGS, ...needs.timings }
  const topics = topicsOf(prefix, topic)
  /** Null until the nodes were read: nothing may be deleted before. */
  let wanted: ReadonlyMap<string, string> | null = null
  /** What the broker retains, as far as it is known. */
  const retained = new Map<string, string>()
  let published: readonly number[] = []
  const withPower = new Set<string>()
  const refreshing = createTimer(clock)
  const sending = createTimer(clock)
  let running = Promise.resolve()
  let isStopped = false
  let hasFailed = false

  const broker = createBroker({
    url,
    ca,
    // The same for all instances: the one that takes over ends the connection of the other, and its last will comes first.
    clientId: `mesh-monitoring-${topic}`,
    will: { topic: topics.status, payload: 'offline' },
    subscribe: [topics.status, ...topics.all],
    clock,
    random,
    onOpen: () => sending.start(0, send),
    onMessage(at, payload) {
      if (!topics.isOwn(at)) return
      if (payload === '') retained.delete(at)
      else if (retained.has(at) || retained.size < MAX_FOUND) retained.set(at, payload)
    },
    onState(reason) {
      // A broker may have forgotten everything; what it still retains, it sends again.
      if (reason !== null) retained.clear()
      const broken = { broker: new URL(url).host, state: reason === null ? 'connected' : 'waiting', reason }
      if (reason !== told) log[reason === null ? 'info' : 'warn']('Home Assistant', broken)
      told = reason
    },
  })
  let told: string | null | undefined

  let wasBlind = false
  const tellBlind = (isBlind: boolean) => {
    const why =
      viewer === null ? 'public access shows no nodes' : 'HOME_ASSISTANT_VIEWER may not see nodes, or does not exist'
    if (isBlind && !wasBlind) log.warn('Nothing is published for Home Assistant', { why })
    wasBlind = isBlind
  }
  const refresh = async () => {
    try {
      const seen = await readPublishedNodes(needs, viewer, { known: published, most: MAX_NODES })
      tellBlind(seen === null)
      const nodes = seen ?? []
      const { nodeActiveSeconds } = await readSettings(needs.store)
      const activeSince = needs.now() - nodeActiveSeconds * SECOND_MS
      const about = { topics, topic, version, publicUrl: config.PUBLIC_URL }
      for (const { nodeId, power } of nodes) if (power !== null) withPower.add(nodeId)
      const messages = nodes.flatMap((node): [string, string][] => [
        [topics.config(node.nodeId), discoveryOf(node, { ...about, hasPower: withPower.has(node.nodeId) })],
        [topics.state(node.nodeId), stateOf(node, activeSince)],
      ])
      wanted = new Map([[topics.status, 'online'], ...messages])
      published = nodes.map(({ nodeNum }) => nodeNum)
      hasFailed = false
    } catch (error) {
      if (!hasFailed) log.error('Nodes could not be read for Home Assistant; retrying', { error })
      hasFailed = true
    }
    if (!isStopped) refreshing.start(timings.refreshMs, begin)
  }
  const begin = () => {
    running = refresh()
  }
  const send = () => {
    let left = RATE
    for (const [at, payload] of differences(wanted, retained)) {
      if (left === 0 || broker.unconfirmed() >= MAX_UNCONFIRMED) break
      if (!broker.publish(at, payload)) return
      if (payload === '') retained.delete(at)
      else retained.set(at, payload)
      left -= 1
    }
    sending.start(timings.sendMs, send)
  }
  begin()
  broker.start()
  return {
    async stop() {
      isStopped = true
      refreshing.stop()
      sending.stop()
      await running
      await broker.stop({ topic: topics.status, payload: 'offline' })
    },
  }
}

/** What to publish, deletions first: they may be of nodes that were hidden. */
function* differences(
  wanted: ReadonlyMap<string, string> | null,
  retained: ReadonlyMap<string, string>,
): Generator<[topic: string, payload: string]> {
  if (wanted === null) return
  for (const at of retained.keys()) if (!wanted.has(at)) yield [at, '']
  for (const [at, payload] of wanted) if (retained.get(at) !== payload) yield [at, payload]
}
