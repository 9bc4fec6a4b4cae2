import { useEffect } from 'preact/hooks'
import { isUnderWay } from '../../../shared/mesh/change-states.ts'
import { api, ask } from '../../api.ts'
import { isLive } from '../../state/live.ts'
import { useLoad } from '../../state/load.ts'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Select } from '../../parts/form/field.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { href, place, queryNode, setQuery } from '../../router.ts'
import { has } from '../../state/session.ts'
import { c } from '../../strings/system/configuration.ts'
import { r } from '../../strings/system/remote.ts'
import './configuration.css'
import { ChangeTag } from './change.tsx'
import { isEdited, useSecretsForgotten } from './edits.ts'
import type { Overview } from './model.ts'
import { SectionNav } from './nav.tsx'
import { RemoteConfiguration } from './remote/remote.tsx'
import { SectionPane } from './section.tsx'
import { FileButtons } from './transfer/buttons.tsx'
import type { EventKind } from '../../../shared/mesh/event-kinds.ts'

const POLL_MS = 15_000
/** Polls while a radio restarts, in case events do not arrive. */
const WATCH_MS = 2000
const EVENTS = ['link', 'configuration'] as const satisfies readonly EventKind[]

/** The settings of a radio, or of a node over the mesh. Without a section: the list of sections. */
export function ConfigurationPage({ section }: { section: string | null }) {
  const nodeId = queryNode(place.value.query, 'node')
  return nodeId === null ? <OwnRadio section={section} /> : <OverMesh section={section} nodeId={nodeId} key={nodeId} />
}

function OverMesh({ section, nodeId }: { section: string | null; nodeId: string }) {
  const radios = useLoad(() => ask(api.configuration.$get({ query: {} })), [])
  const known = radios.data.value
  useSecretsForgotten()
  return (
    <Page title={c.title} actions={known !== null && <Targets source={null} sources={known.sources} nodeId={nodeId} />}>
      <RemoteConfiguration nodeId={nodeId} section={section} />
    </Page>
  )
}

function OwnRadio({ section }: { section: string | null }) {
  const source = place.value.query.get('source')
  const query = source === null ? {} : { source }
  const overview = useLoad(() => ask(api.configuration.$get({ query })), [source], POLL_MS, EVENTS)
  useSecretsForgotten()
  const known = overview.data.value
  const isWatching = isUnderWay(known?.lastChange?.state) && !isLive(EVENTS)
  useEffect(() => {
    if (!isWatching) return
    const timer = setInterval(() => void overview.reload(), WATCH_MS)
    return () => clearInterval(timer)
  }, [isWatching])
  return (
    <Page
      title={c.title}
      actions={
        <>
          {known !== null && known.source !== null && known.editable && !known.byCollector && (
            <FileButtons source={known.source} onSent={() => void overview.reload()} />
          )}
          {known !== null && <Targets source={known.source} sources={known.sources} nodeId={null} />}
          <a class="button" href={href('/configuration/connections')}>
            {c.connections}
          </a>
        </>
      }
    >
      <Failure error={overview.error.value} retry={overview.reload} />
      {known !== null && known.sections.length === 0 && (
        <Empty icon="radio" title={c.none}>
          <p>{c.noneHelp}</p>
          <ConnectHelp />
        </Empty>
      )}
      {known !== null && known.source !== null && known.sections.length > 0 && (
        <div class={section === null ? 'configuration' : 'configuration has-section'}>
          <SectionNav
            entries={known.sections}
            pathOf={pathOf}
            chosen={section}
            tag={(entry) => tagOf(entry, known.source ?? '')}
          />
          <div class="configuration-pane">
            {known.byCollector && <p class="faint">{c.byCollector}</p>}
            {section === null ? (
              <Choose />
            ) : (
              <SectionLoader
                key={`${known.source} ${section}`}
                source={known.source}
                section={section}
                overview={known}
                onSent={() => void overview.reload()}
              />
            )}
          </div>
        </div>
      )}
    </Page>
  )
}

function Choose() {
  return (
    <Empty icon="radio" title={c.choose}>
      <p>{c.chooseHelp}</p>
    </Empty>
  )
}

/** Chooses a radio of this service, or a node that is configured over the mesh. */
function Targets({ source, sources, nodeId }: Pick<Overview, 'source' | 'sources'> & { nodeId: string | null }) {
  const remote = useLoad(
    async () => (has('radio') ? (await ask(api.remote.$get())).nodes : []),
    [nodeId],
    undefined,
    EVENTS,
  )
  const nodes = remote.data.value ?? []
  const named = nodes.map((node) => [node.nodeId, r.overMesh(node.longName ?? node.nodeId)] as const)
  const isNew = nodeId !== null && !nodes.some((node) => node.nodeId === nodeId)
  const options = [
    ...sources.map((name) => [name, name] as const),
    ...named,
    ...(isNew ? [[nodeId, r.overMesh(nodeId)] as const] : []),
  ]
  if (options.length < 2) return null
  const choose = (chosen: string) =>
    setQuery(sources.includes(chosen) ? { source: chosen, node: '' } : { node: chosen, source: '' })
  return (
    <Select
      label={named.length > 0 || isNew ? r.which : c.source}
      value={nodeId ?? source ?? ''}
      options={options}
      onChange={choose}
    />
  )
}

/** The latest change of a section, or that something in it is not sent. */
function tagOf({ section, lastChange }: Overview['sections'][number], source: string) {
  if (lastChange !== null && lastChange.state !== 'applied') return <ChangeTag change={lastChange} />
  return isEdited(source, section) && <span class="tag accent">{c.edited}</span>
}

function pathOf(section: string): string {
  const source = place.value.query.get('source')
  const query = source === null ? '' : `?source=${encodeURIComponent(source)}`
  return href(`/configuration${section === '' ? '' : `/${section}`}${query}`)
}

type LoaderProps = { source: string; section: string; overview: Overview; onSent(): void }

function SectionLoader({ source, section, overview, onSent }: LoaderProps) {
  const load = () => ask(api.configuration[':section'].$get({ param: { section }, query: { source } }))
  const loaded = useLoad(load, [], POLL_MS, EVENTS)
  const found = loaded.data.value
  const isApplying = isUnderWay(overview.lastChange?.state) || isUnderWay(found?.lastChange?.state)
  const isWatching = isApplying && !isLive(EVENTS)
  useEffect(() => {
    if (!isWatching) return
    const timer = setInterval(() => void loaded.reload(), WATCH_MS)
    return () => {
      clearInterval(timer)
      // The outcome.
      void loaded.reload()
    }
  }, [isWatching])
  if (loaded.error.value?.code === 'section_not_found') {
    return (
      <Empty icon="radio" title={c.noSection}>
        <p>{c.noSectionHelp}</p>
      </Empty>
    )
  }
  return (
    <>
      <a class="up sections-up" href={pathOf('')}>
        <Icon name="back" />
        {c.back}
      </a>
      <Failure error={loaded.error.value} retry={loaded.reload} />
      {found !== null && <SectionPane section={found} overview={overview} loaded={loaded} onSent={onSent} />}
    </>
  )
}
