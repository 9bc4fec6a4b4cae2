import type { InferResponseType } from 'hono/client'
import { api, ask, askAs } from '../../../api.ts'
import { count, tenths } from '../../../format.ts'
import { r } from '../../../strings/system/remote.ts'
import type { Destination, Section } from '../model.ts'

type NodeRoute = (typeof api.remote)[':id']
export type Remote = Extract<InferResponseType<NodeRoute['$get']>, { sections: unknown }>
export type RemoteSection = Extract<InferResponseType<NodeRoute[':section']['$get']>, { fields: unknown }>
export type RemoteAction = NonNullable<Remote['lastAction']>
type Airtime = Remote['rebootAirtime']

/** What something costs on the air. */
export function airtimeText({ ms, packets }: Airtime, { hops }: Pick<Remote, 'hops'>): string {
  const text = r.airtime(r.seconds(tenths(ms / 1000)), count(packets), count(hops.count))
  return hops.isAssumed ? `${text} ${r.assumedHops}` : text
}

/** As a section of a radio, for its editor. Edits are kept by `nodeId`. */
export function asSection(found: RemoteSection, nodeId: string): Section {
  const { lastAction: _lastAction, lastChange, changeAirtime: _changeAirtime, losses: _losses, ...section } = found
  const applied = lastChange?.state === 'applied' ? lastChange : null
  return {
    ...section,
    source: nodeId,
    regionPresets: [],
    lastChange: applied === null ? null : { ...applied, section: section.section, state: 'applied', reason: null },
  }
}

export function destinationOf(remote: Remote, { changeAirtime }: RemoteSection): Destination {
  return {
    airtime: airtimeText(changeAirtime, remote),
    sent: r.sent,
    nothing: r.nothing,
    async put({ section }, json, accept) {
      const asked = { param: { id: remote.nodeId, section }, json: { ...json, accept: [...accept] } }
      const { action } = await askAs<{ action: RemoteAction | null }>(api.remote[':id'][':section'].$put(asked))
      return action
    },
  }
}

export function readSection(remote: Remote, section: string): Promise<unknown> {
  return ask(api.remote[':id'].$post({ param: { id: remote.nodeId }, json: { action: 'read', section } }))
}
