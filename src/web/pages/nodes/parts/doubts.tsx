import type { ComponentChildren } from 'preact'
import { api, ask } from '../../../api.ts'
import { ExactAge } from '../../../parts/age.tsx'
import { askFirst } from '../../../parts/dialog.tsx'
import { Actions } from '../../../parts/form/field.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { say } from '../../../parts/notice.tsx'
import { can, isAnonymous } from '../../../state/session.ts'
import { useLoad } from '../../../state/load.ts'
import type { KeyHealth } from '../../../state/mesh/key-health.ts'
import { nameOf, nodeName, refreshNodes } from '../../../state/mesh/nodes.ts'
import { identityTexts } from '../../../strings/mesh/identity.ts'
import { keyTexts } from '../../../strings/mesh/keys.ts'
import { nodeTexts } from '../../../strings/mesh/node.ts'
import { t } from '../../../strings.ts'
import { NodeLink } from '../keys.tsx'
import type { NodeDetail } from './detail.ts'

type Props = { node: NodeDetail; onChanged(): Promise<void> }

/** What casts doubt on who the node is, and the decisions about it. */
export function Doubts({ node, onChanged }: Props) {
  return (
    <>
      {node.keyMismatch && (
        <Warning title={t.nodes.mismatch} help={nodeTexts.mismatchHelp}>
          <Keys node={node} onChanged={onChanged} />
        </Warning>
      )}
      {node.spoofSuspected && (
        <Warning title={t.nodes.spoofed} help={node.isLocal ? nodeTexts.spoofedOwnHelp : nodeTexts.spoofedHelp}>
          <Suspicions node={node} />
          {!node.keyMismatch && <Identities node={node} onChanged={onChanged} />}
        </Warning>
      )}
      <Claims node={node} onChanged={onChanged} />
      {node.weakKey && <Warning title={nodeTexts.weakKey} help={nodeTexts.weakKeyHelp} />}
      {node.publicKey !== null && can('nodes', 'read') && !isAnonymous.value && <Sharing node={node} />}
    </>
  )
}

/** Other nodes with the same key. */
function Sharing({ node: { nodeNum, publicKey } }: { node: NodeDetail }) {
  const { data } = useLoad(() => ask<KeyHealth[]>(api.nodes.keys.$get()), [publicKey])
  const found = data.value?.find((each) => each.nodeNum === nodeNum)
  const others = found?.sharedWith ?? []
  if (found === undefined || others.length === 0) return null
  return (
    <Warning title={keyTexts.sharedTitle} help={keyTexts.sharedHelp}>
      <ul class="rows tight">
        {others.map((other) => (
          <li key={other}>
            <NodeLink nodeNum={other} />
          </li>
        ))}
      </ul>
      {found.holders > others.length + 1 && <p>{keyTexts.holders(found.holders)}</p>}
    </Warning>
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
function Keys({ node, onChanged }: Props) {
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
function Identities({ node, onChanged }: Props) {
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
function Claims({ node, onChanged }: Props) {
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
