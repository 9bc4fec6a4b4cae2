import { useEffect } from 'preact/hooks'
import { isOpenRemote } from '../../../../shared/mesh/remote-states.ts'
import { api, ask } from '../../../api.ts'
import { CopyText } from '../../../parts/copy.tsx'
import { askFirst } from '../../../parts/dialog.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Empty, Failure } from '../../../parts/notice.tsx'
import { href } from '../../../router.ts'
import { isLive } from '../../../state/live.ts'
import { useAction, useLoad } from '../../../state/load.ts'
import { withProof } from '../../../state/proof.ts'
import { can } from '../../../state/session.ts'

import { c } from '../../../strings/system/configuration.ts'
import { r } from '../../../strings/system/remote.ts'
import { SectionNav } from '../nav.tsx'
import { airtimeText, type Remote } from './model.ts'
import { Progress } from './progress.tsx'
import { RemotePane } from './section.tsx'

const POLL_MS = 15_000
const WATCH_MS = 2000
const EVENTS = ['configuration', 'link'] as const

/** The settings of a node, over the mesh. Without a section: the list of sections. */
export function RemoteConfiguration({ nodeId, section }: { nodeId: string; section: string | null }) {
  const loaded = useLoad(() => ask(api.remote[':id'].$get({ param: { id: nodeId } })), [nodeId], POLL_MS, EVENTS)
  const { error, reload } = loaded
  const isUnnamed = error.value?.code === 'node_not_found'
  const remote = isUnnamed ? null : loaded.data.value
  const state = remote?.lastAction?.state ?? null
  const isWatching = state !== null && isOpenRemote(state) && !isLive(EVENTS)
  useEffect(() => {
    if (!isWatching) return
    const timer = setInterval(() => void reload(), WATCH_MS)
    return () => clearInterval(timer)
  }, [isWatching])
  const onBegun = () => void reload()
  if (isUnnamed) return <Naming nodeId={nodeId} onNamed={reload} />
  return (
    <>
      <Failure error={error.value} retry={reload} />
      {remote !== null && (
        <div class={section === null ? 'configuration has-about' : 'configuration has-section'}>
          <SectionNav
            entries={remote.sections}
            pathOf={(name) => pathOf(nodeId, name)}
            chosen={section}
            tag={({ readAt }) => (readAt === null ? null : <span class="tag">{r.tagRead}</span>)}
          />
          <div class="configuration-pane">
            {remote.problem !== null && <div class="notice notice-warn">{remote.problem}</div>}
            {section === null ? (
              <About remote={remote} reload={reload} />
            ) : (
              <>
                <a class="up sections-up" href={pathOf(nodeId, '')}>
                  <Icon name="back" />
                  {c.back}
                </a>
                <RemotePane key={section} remote={remote} section={section} onBegun={onBegun} />
              </>
            )}
            <AdminKeyHelp remote={remote} section={section} />
          </div>
        </div>
      )}
    </>
  )
}

function pathOf(nodeId: string, section: string): string {
  const query = `?node=${encodeURIComponent(nodeId)}`
  return href(`/configuration${section === '' ? '' : `/${section}`}${query}`)
}

/** A node that nobody named as own. */
function Naming({ nodeId, onNamed }: { nodeId: string; onNamed(): Promise<void> }) {
  const naming = useAction()
  const name = () =>
    naming.run(async () => {
      await nameNode(nodeId, true)
      await onNamed()
    })
  return (
    <Empty icon="radio" title={r.nameTitle}>
      <p>{r.nameHelp}</p>
      <p>{r.nameSteps}</p>
      <Failure error={naming.error.value} />
      {can('configuration', 'write') && (
        <button type="button" class="button primary" disabled={naming.busy.value} onClick={() => void name()}>
          {r.nameIt}
        </button>
      )}
    </Empty>
  )
}

async function nameNode(id: string, own: boolean): Promise<void> {
  await ask(api.remote[':id'].$put({ param: { id }, json: { own } }))
}

/** What can be done with the node as a whole. */
function About({ remote, reload }: { remote: Remote; reload(): Promise<void> }) {
  const { nodeId, longName, lastAction, keyState, firmwareVersion } = remote
  const isBusy = lastAction !== null && isOpenRemote(lastAction.state)
  const naming = useAction()
  const restart = async () => {
    await withProof(() =>
      ask(api.remote[':id'].$post({ param: { id: nodeId }, json: { action: 'reboot', confirm: true } })),
    )
    await reload()
  }
  const unname = async () => {
    await withProof(() => nameNode(nodeId, false))
    await reload()
  }
  const trust = () =>
    naming.run(async () => {
      await nameNode(nodeId, true)
      await reload()
    })
  return (
    <div class="stack">
      <p>{r.intro}</p>
      {firmwareVersion !== null && <p class="faint">{r.firmware(firmwareVersion)}</p>}
      <Progress action={lastAction} section={null} />
      <Failure error={naming.error.value} />
      {can('configuration', 'write') && (
        <div class="form-actions">
          {keyState === 'changed' && (
            <button type="button" class="button primary" disabled={naming.busy.value} onClick={() => void trust()}>
              {r.nameAgain}
            </button>
          )}
          <button
            type="button"
            class="button"
            disabled={isBusy || remote.problem !== null}
            onClick={() =>
              askFirst({
                text: r.restartAsk(airtimeText(remote.rebootAirtime, remote)),
                confirm: r.restart,
                isDangerous: true,
                act: restart,
              })
            }
          >
            {r.restart}
          </button>
          <button
            type="button"
            class="button"
            onClick={() =>
              askFirst({ text: r.unnameAsk(longName ?? nodeId), confirm: r.unname, isDangerous: true, act: unname })
            }
          >
            {r.unname}
          </button>
        </div>
      )}
    </div>
  )
}

/** Shown at the start, and when the node does not know our key. */
function AdminKeyHelp({ remote: { ownKey, lastAction }, section }: { remote: Remote; section: string | null }) {
  const isNeeded = section === null || lastAction?.reason === 'not_admin'
  if (ownKey === null || !isNeeded) return null
  return (
    <div class="card">
      <p>{r.nameSteps}</p>
      <CopyText text={ownKey} label={r.ownKey} />
    </div>
  )
}
