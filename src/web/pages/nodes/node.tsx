import { nodeTexts } from '../../strings/mesh/node.ts'
import { identityTexts } from '../../strings/mesh/identity.ts'
import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { api, ask, send } from '../../api.ts'
import { keepDraft, readDraft } from '../../state/drafts.ts'
import { decimal, duration, humanize, modelName, plain } from '../../format.ts'
import { altitude as shownAltitude, distance } from '../../measure.ts'
import { useOfflineCache } from '../../state/offline-cache.ts'
import { needHeard } from '../../state/live.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { nameOf, type Node, nodeName, precisionMeters, refreshNodes } from '../../state/mesh/nodes.ts'
import { ExactAge } from '../../parts/age.tsx'
import { Copyable } from '../../parts/copy.tsx'
import { askFirst } from '../../parts/dialog.tsx'
import { Actions } from '../../parts/form/field.tsx'
import { Battery, Signal } from '../../parts/gauges.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty, Failure, say } from '../../parts/notice.tsx'
import { Card, Facts, Page } from '../../parts/page.tsx'
import { asLeft, href, navigate } from '../../router.ts'
import { can, has, isAnonymous, user } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { useChannels } from '../automation/channels.ts'
import { NodeHistory } from './history.tsx'
import { NodePackets } from './packets.tsx'
import { NodeRoutes } from './routes.tsx'
import { percent } from './columns.tsx'
import { WatchNode } from './watch.tsx'
import { MAX_NOTES } from '../../../shared/limits.ts'

const POLL_MS = 10_000

type NodeDetail = InferResponseType<(typeof api.nodes)[':id']['$get'], 200>

export function NodePage({ id }: { id: string }) {
  const about = id.startsWith('!') ? id : null
  useEffect(needHeard, [])
  const loaded = useLoad(() => ask(api.nodes[':id'].$get({ param: { id } })), [id], POLL_MS, ['node'], null, about)
  const { data, error, reload } = loaded
  useOfflineCache(`node ${id}`, loaded)
  const node = data.value
  const up = { path: asLeft('/nodes'), name: t.nodes.title }
  if (error.value?.code === 'node_not_found') {
    return (
      <Page title={nodeTexts.gone} up={up}>
        <Empty icon="nodes">
          <p>{nodeTexts.goneHelp}</p>
        </Empty>
      </Page>
    )
  }
  return (
    <Page
      title={node === null ? id : nodeName(node)}
      up={up}
      actions={node !== null && <NodeActions node={node} onChanged={reload} />}
    >
      <Failure error={error.value} retry={reload} />
      {node?.keyMismatch && (
        <Warning title={t.nodes.mismatch} help={nodeTexts.mismatchHelp}>
          <Keys node={node} onChanged={reload} />
        </Warning>
      )}
      {node?.spoofSuspected && (
        <Warning title={t.nodes.spoofed} help={node.isLocal ? nodeTexts.spoofedOwnHelp : nodeTexts.spoofedHelp}>
          <Suspicions node={node} />
          {!node.keyMismatch && <Identities node={node} onChanged={reload} />}
        </Warning>
      )}
      {node !== null && <Claims node={node} onChanged={reload} />}
      {node?.weakKey && <Warning title={nodeTexts.weakKey} help={nodeTexts.weakKeyHelp} />}
      {node !== null && (
        <>
          <div class="pairs">
            <SignalCard node={node} />
            <DeviceCard node={node} />
            <PositionCard node={node} />
            <IdentityCard node={node} />
          </div>
          <Notes node={node} onSaved={reload} />
          {can('info', 'read') && <NodeRoutes node={node} />}
          {can('info', 'read') && <NodeHistory node={node} />}
          {can('info', 'read') && !isAnonymous.value && <NodePackets node={node} />}
        </>
      )}
    </Page>
  )
}

function Warning({ title, help, children }: { title: string; help: string; children?: ComponentChildren }) {
  return (
    <div class="notice notice-bad notice-tall">
      <Icon name="warning" />
      <div>
        <strong>{title}</strong>
        <p class="measure">{help}</p>
        {children}
      </div>
    </div>
  )
}

/** The announced keys, for users who have asked the node's owner. */
function Keys({ node, onChanged }: { node: NodeDetail; onChanged(): Promise<void> }) {
  const { publicKey, previousPublicKey, refused } = node
  const keys = [
    { id: 'known', name: nodeTexts.keyKnown, key: publicKey, about: null },
    {
      id: 'first',
      name: nodeTexts.keyFirst,
      key: previousPublicKey === publicKey ? null : previousPublicKey,
      about: null,
    },
    ...refused.map((each, at) => ({
      id: `refused ${at}`,
      name: [nodeTexts.keyRefused, namesOf(each)].filter((part) => part !== '').join(' · '),
      key: each.publicKey,
      about: <ReportedIdentity by={each} />,
    })),
  ]
  const accept = (key: string) =>
    askFirst({
      text: nodeTexts.keySure(nodeName(node)),
      confirm: nodeTexts.keyAccept,
      isDangerous: true,
      act: async () => {
        await ask(api.nodes[':id'].key.$put({ param: { id: node.nodeId }, json: { publicKey: key } }))
        say(nodeTexts.keyAccepted)
        await Promise.all([onChanged(), refreshNodes()])
      },
    })
  return (
    <ul class="rows tight key-rows">
      {keys.map(
        ({ id, name, key, about }) =>
          key !== null && (
            <li key={id}>
              <span class="grow">
                <bdi>{name}</bdi>
                <br />
                <span class="mono break">{key}</span>
                {about}
              </span>
              {can('nodes', 'write') && (
                <button type="button" class="button small" onClick={() => accept(key)}>
                  {nodeTexts.keyAccept}
                </button>
              )}
            </li>
          ),
      )}
    </ul>
  )
}

type Refused = NodeDetail['refused'][number]

function namesOf({ longName, shortName }: Pick<Refused, 'longName' | 'shortName'>): string {
  return [longName, shortName].filter((name) => name !== null).join(' · ')
}

function whoReported({ source, gateway, gatewayId }: Pick<Refused, 'source' | 'gateway' | 'gatewayId'>): string {
  if (source === null) return identityTexts.refusedUnknown
  return gateway === null || gatewayId === null
    ? identityTexts.heardBySource(source)
    : identityTexts.reportedByGateway(nameOf(gateway, gatewayId), source)
}

/** Where a refused identity came from, and when. */
function ReportedIdentity({ by }: { by: Refused }) {
  return (
    <>
      <br />
      <span class="faint">
        {whoReported(by)}
        {by.lastAt !== null && (
          <>
            , <ExactAge at={by.lastAt} />
          </>
        )}
      </span>
    </>
  )
}

/** Why the node is suspected, by source and gateway of the packets. */
function Suspicions({ node: { suspicions } }: { node: NodeDetail }) {
  return (
    <ul class="rows tight">
      {suspicions.map(({ reason, source, gateway, gatewayId, count, lastAt }) => (
        <li key={`${reason} ${source} ${gateway}`}>
          <span class="grow">
            {identityTexts.suspicions[reason]}
            <br />
            <span class="faint">
              {whoReported({ source, gateway, gatewayId })}, {identityTexts.times(count)}, <ExactAge at={lastAt} />
            </span>
          </span>
        </li>
      ))}
    </ul>
  )
}

/** The current names and the refused ones, if both have the same key. */
function Identities({ node, onChanged }: { node: NodeDetail; onChanged(): Promise<void> }) {
  if (!can('nodes', 'write')) return null
  const settle = (use: 'known' | 'refused', by: Refused | undefined) => {
    const { publicKey = null, longName = null, shortName = null } = by ?? {}
    const seen = { refusedPublicKey: publicKey, refusedLongName: longName, refusedShortName: shortName }
    askFirst({
      text: use === 'known' ? identityTexts.keepSure(nodeName(node)) : identityTexts.takeSure(nodeName(node)),
      confirm: use === 'known' ? identityTexts.keepKnown : identityTexts.takeRefused,
      isDangerous: use === 'refused',
      act: async () => {
        await ask(api.nodes[':id'].identity.$put({ param: { id: node.nodeId }, json: { use, ...seen } }))
        say(identityTexts.settled)
        await Promise.all([onChanged(), refreshNodes()])
      },
    })
  }
  return (
    <>
      <ul class="rows tight">
        {node.refused.map((each, at) => (
          <li key={at}>
            <span class="grow">
              <bdi>{identityTexts.refusedNames(namesOf(each))}</bdi>
              <ReportedIdentity by={each} />
            </span>
            {!node.isLocal && (
              <button type="button" class="button small" onClick={() => settle('refused', each)}>
                {identityTexts.takeRefused}
              </button>
            )}
          </li>
        ))}
      </ul>
      <Actions>
        <button type="button" class="button small" onClick={() => settle('known', node.refused[0])}>
          {identityTexts.keepKnown}
        </button>
      </Actions>
    </>
  )
}

/** That a collector calls the node its radio, for those who know whose radios they are. */
function Claims({ node, onChanged }: { node: NodeDetail; onChanged(): Promise<void> }) {
  const { claims, declaredOwn } = node
  if (claims.length === 0 && declaredOwn === null) return null
  const decide = (own: boolean | null, text: string, confirm: string) =>
    askFirst({
      text,
      confirm,
      isDangerous: own === true,
      act: async () => {
        await ask(api.nodes[':id'].own.$put({ param: { id: node.nodeId }, json: { own } }))
        say(identityTexts.settled)
        await Promise.all([onChanged(), refreshNodes()])
      },
    })
  const name = nodeName(node)
  const isBelieved = claims.some(({ believed }) => believed)
  const state = isBelieved ? identityTexts.claimBelieved : identityTexts.claimEnded
  const decided = declaredOwn === true ? identityTexts.declaredOwn : identityTexts.declaredOther
  return (
    <div class={`notice notice-tall ${isBelieved || declaredOwn !== null ? '' : 'notice-bad'}`}>
      <Icon name={isBelieved || declaredOwn !== null ? 'info' : 'warning'} />
      <div>
        {claims.length > 0 && <strong>{identityTexts.claimed(claims.map(({ source }) => source).join(', '))}</strong>}
        <p class="measure">{declaredOwn === null ? state : decided}</p>
        {can('configuration', 'write') && (
          <Actions>
            {declaredOwn !== true && claims.length > 0 && (
              <button
                type="button"
                class="button small"
                onClick={() => decide(true, identityTexts.ownSure(name), identityTexts.isOwn)}
              >
                {identityTexts.isOwn}
              </button>
            )}
            {declaredOwn !== false && claims.length > 0 && (
              <button
                type="button"
                class="button small"
                onClick={() => decide(false, identityTexts.notOwnSure(name), identityTexts.isNotOwn)}
              >
                {identityTexts.isNotOwn}
              </button>
            )}
            {declaredOwn !== null && (
              <button
                type="button"
                class="button small"
                onClick={() => decide(null, identityTexts.undecideSure(name), identityTexts.undecide)}
              >
                {identityTexts.undecide}
              </button>
            )}
          </Actions>
        )}
      </div>
    </div>
  )
}

function NodeActions({ node, onChanged }: { node: Node; onChanged(): Promise<void> }) {
  const { busy, error, run } = useAction()
  const param = { id: node.nodeId }
  const set = (json: { isFavorite?: boolean; isIgnored?: boolean; hidden?: boolean }) =>
    run(async () => {
      await ask(api.nodes[':id'].$put({ param, json }))
      await Promise.all([onChanged(), refreshNodes()])
    })
  const forget = () =>
    askFirst({
      text: nodeTexts.forgetSure(nodeName(node)),
      confirm: nodeTexts.forget,
      isDangerous: true,
      act: async () => {
        await send(api.nodes[':id'].$delete({ param }))
        say(nodeTexts.forgotten)
        navigate(asLeft('/nodes'))
      },
    })
  return (
    <>
      <Failure error={error.value} />
      {!isAnonymous.value && <WatchNode node={node} />}
      {can('messages', 'read') && !isAnonymous.value && !node.isLocal && (
        <a class="button" href={href(`/messages?with=${node.nodeId}`)}>
          <Icon name="messages" />
          {can('messages', 'write') && has('radio') ? nodeTexts.write : nodeTexts.messages}
        </a>
      )}
      {can('nodes', 'write') && (
        <>
          <button
            type="button"
            class="button"
            aria-pressed={node.isFavorite}
            disabled={busy.value}
            onClick={() => void set({ isFavorite: !node.isFavorite })}
          >
            <Icon name="star" filled={node.isFavorite} />
            {nodeTexts.favorite}
          </button>
          <button
            type="button"
            class="button"
            aria-pressed={node.isIgnored}
            disabled={busy.value}
            onClick={() => void set({ isIgnored: !node.isIgnored })}
          >
            {node.isIgnored ? nodeTexts.ignored : nodeTexts.ignore}
          </button>
          <button
            type="button"
            class="button"
            aria-pressed={node.hidden}
            title={nodeTexts.hideHelp}
            disabled={busy.value}
            onClick={() => void set({ hidden: !node.hidden })}
          >
            {node.hidden ? nodeTexts.hidden : nodeTexts.hide}
          </button>
          <button type="button" class="button danger-quiet" onClick={forget}>
            {nodeTexts.forget}
          </button>
        </>
      )}
    </>
  )
}

function SignalCard({ node }: { node: Node }) {
  const channels = useChannels()
  return (
    <Card title={t.nodes.signal}>
      <Facts
        entries={[
          [nodeTexts.lastHeard, <ExactAge at={node.lastHeard} />],
          [
            nodeTexts.lastHeardByRadio,
            node.lastHeardByBroker === null ? null : <ExactAge at={node.lastHeardByRadio} />,
          ],
          [t.nodes.hops, node.hopsAway === null ? null : t.nodes.hopsAway(node.hopsAway)],
          [nodeTexts.via, node.viaMqtt ? nodeTexts.viaMqtt : nodeTexts.viaRadio],
          [t.nodes.snr, node.snr === null ? null : <Signal snr={node.snr} />],
          [nodeTexts.rssi, node.rssi === null ? null : `${decimal(node.rssi, 0)} dBm`],
          [nodeTexts.channel, node.channel === null ? null : channels.name(node.channel)],
          [nodeTexts.firstHeard, <ExactAge at={node.firstHeard} />],
        ]}
      />
    </Card>
  )
}

function DeviceCard({ node }: { node: Node }) {
  const metrics = node.deviceMetrics
  return (
    <Card title={nodeTexts.device}>
      {metrics === null ? (
        <p class="faint">{nodeTexts.noMetrics}</p>
      ) : (
        <Facts
          entries={[
            [nodeTexts.battery, <Battery level={metrics.batteryLevel} />],
            [nodeTexts.voltage, metrics.voltage === null ? null : `${decimal(metrics.voltage, 2)} V`],
            [nodeTexts.channelUtilization, percent(metrics.channelUtilization)],
            [nodeTexts.airtime, percent(metrics.airUtilTx)],
            [nodeTexts.uptime, metrics.uptimeSeconds === null ? null : duration(metrics.uptimeSeconds)],
          ]}
        />
      )}
    </Card>
  )
}

function PositionCard({ node }: { node: Node }) {
  const { position } = node
  if (position === null) {
    return (
      <Card title={nodeTexts.position}>
        <p class="faint">{t.nodes.noPosition}</p>
      </Card>
    )
  }
  const { latitude, longitude, altitude, precisionBits, time } = position
  const meters = precisionMeters(precisionBits)
  return (
    <Card
      title={nodeTexts.position}
      actions={
        <a class="button small" href={href(`/map?node=${node.nodeId}`)}>
          {t.nodes.showOnMap}
        </a>
      }
    >
      <Facts
        entries={[
          [
            t.nodes.coordinates,
            <Copyable text={`${latitude.toFixed(5)}, ${longitude.toFixed(5)}`} name={t.nodes.coordinates} />,
          ],
          [nodeTexts.altitude, altitude === null ? null : shownAltitude(altitude)],
          [nodeTexts.precision, meters === null ? nodeTexts.exact : t.nodes.within(distance(meters))],
          [t.nodes.positionTime, time === null ? null : <ExactAge at={time} />],
        ]}
      />
    </Card>
  )
}

function IdentityCard({ node }: { node: NodeDetail }) {
  const { signedAt, status } = node
  const signedParts = [
    node.nameSigned ? nodeTexts.signedParts.names : [],
    node.positionSigned ? nodeTexts.signedParts.position : [],
    node.statusSigned ? nodeTexts.signedParts.status : [],
  ].flat()
  return (
    <Card title={nodeTexts.identity}>
      <Facts
        entries={[
          [t.nodes.status, status ? <Status {...status} /> : null],
          [nodeTexts.id, <Copyable text={node.nodeId} name={nodeTexts.id} />],
          [nodeTexts.number, <span class="mono">{node.nodeNum}</span>],
          [nodeTexts.formerly, node.formerNodeNums.length === 0 ? null : <FormerIds nodeNums={node.formerNodeNums} />],
          [nodeTexts.shortName, node.shortName],
          [nodeTexts.name, node.nameAltered ? <Altered /> : null],
          [t.nodes.hardware, node.hwModel === null ? null : modelName(node.hwModel)],
          [t.nodes.firmware, node.firmwareVersion],
          [t.nodes.role, node.role === null ? null : humanize(node.role)],
          [nodeTexts.licensed, node.isLicensed ? t.common.yes : null],
          [nodeTexts.local, node.isLocal ? t.common.yes : null],
          [identityTexts.keyConfirmed, node.keyConfirmed ? t.common.yes : null],
          [nodeTexts.key, node.publicKey === null ? null : <Copyable text={node.publicKey} name={nodeTexts.key} />],
          [t.nodes.proof, signedAt === null ? nodeTexts.signedNever : <Verified at={signedAt} />],
          [nodeTexts.signedContent, signedParts.length === 0 ? null : signedParts.join(', ')],
        ]}
      />
    </Card>
  )
}

function Status({ text, time }: NonNullable<Node['status']>) {
  return (
    <>
      <bdi>{plain(text)}</bdi>
      {time !== null && (
        <>
          <br />
          <span class="faint">
            {nodeTexts.statusFrom} <ExactAge at={time} />
          </span>
        </>
      )}
    </>
  )
}

function Altered() {
  return (
    <>
      <Icon name="warning" /> {nodeTexts.alteredHelp}
    </>
  )
}

function Verified({ at }: { at: number }) {
  return (
    <>
      <span class="good">
        <Icon name="shield" />
      </span>{' '}
      {nodeTexts.signedLast} <ExactAge at={at} />
    </>
  )
}

function FormerIds({ nodeNums }: { nodeNums: readonly number[] }) {
  const ids = nodeNums.map((nodeNum) => `!${nodeNum.toString(16).padStart(8, '0')}`)
  return <span class="mono">{ids.join(' ')}</span>
}

function Notes({ node, onSaved }: { node: Node; onSaved(): Promise<void> }) {
  const { busy, error, run } = useAction()
  const draft = `${user.value?.id}:notes:${node.nodeId}`
  const edited = useSignal<string | null>(readDraft(draft) || null)
  useEffect(() => keepDraft(draft, edited.value ?? ''), [edited.value])
  if (!can('nodes', 'write')) {
    return node.notes === '' ? null : (
      <Card title={nodeTexts.notes}>
        <p class="pre">{node.notes}</p>
      </Card>
    )
  }
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    void run(async () => {
      await ask(api.nodes[':id'].$put({ param: { id: node.nodeId }, json: { notes: edited.value ?? node.notes } }))
      say(t.common.saved)
      await onSaved()
      edited.value = null
    })
  }
  return (
    <Card title={nodeTexts.notes}>
      <form onSubmit={save} class="stack">
        <textarea
          aria-label={nodeTexts.notes}
          placeholder={nodeTexts.notesHint}
          rows={3}
          maxLength={MAX_NOTES}
          value={edited.value ?? node.notes}
          onInput={(event) => (edited.value = event.currentTarget.value)}
        />
        <Failure error={error.value} />
        <Actions>
          <button class="button" disabled={busy.value || edited.value === null || edited.value === node.notes}>
            {t.common.save}
          </button>
        </Actions>
      </form>
    </Card>
  )
}
