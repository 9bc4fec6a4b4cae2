import { useEffect } from 'preact/hooks'
import { api, ask } from '../../api.ts'
import { isLive } from '../../state/live.ts'
import { useLoad } from '../../state/load.ts'
import { ConnectHelp } from '../../parts/connect-help.tsx'
import { Select } from '../../parts/form/field.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { href, place, setQuery } from '../../router.ts'
import { c, SECTIONS } from '../../strings/system/configuration.ts'
import './configuration.css'
import { ChangeTag } from './change.tsx'
import { isEdited, useSecretsForgotten } from './edits.ts'
import type { Overview } from './model.ts'
import { SectionPane } from './section.tsx'
import { FileButtons } from './transfer/buttons.tsx'
import { sectionName } from './words.ts'
import type { EventKind } from '../../../shared/mesh/event-kinds.ts'

const POLL_MS = 15_000
/** Polls while a radio restarts, in case events do not arrive. */
const WATCH_MS = 2000
const EVENTS = ['link', 'configuration'] as const satisfies readonly EventKind[]

/** The order in which people look for sections. */
const ORDER = Object.keys(SECTIONS)

/** The settings of a radio by section. Without a section: the list of sections. */
export function ConfigurationPage({ section }: { section: string | null }) {
  const source = place.value.query.get('source')
  const query = source === null ? {} : { source }
  const overview = useLoad(() => ask(api.configuration.$get({ query })), [source], POLL_MS, EVENTS)
  useSecretsForgotten()
  const known = overview.data.value
  const isWatching = known?.lastChange?.state === 'applying' && !isLive(EVENTS)
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
          {known !== null && known.source !== null && known.editable && (
            <FileButtons source={known.source} onSent={() => void overview.reload()} />
          )}
          {known !== null && known.sources.length > 1 && <Sources overview={known} />}
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
          <Sections overview={known} source={known.source} chosen={section} />
          <div class="configuration-pane">
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

function Sources({ overview: { source, sources } }: { overview: Overview }) {
  return (
    <Select
      label={c.source}
      value={source ?? ''}
      options={sources.map((name) => [name, name] as const)}
      onChange={(name) => setQuery({ source: name })}
    />
  )
}

type SectionsProps = { overview: Overview; source: string; chosen: string | null }

function Sections({ overview, source, chosen }: SectionsProps) {
  const rank = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length)
  const all = overview.sections.toSorted((a, b) => rank(a.section) - rank(b.section))
  const groups = [
    [c.groups.radio, all.filter(({ kind }) => kind !== 'moduleConfig')],
    [c.groups.modules, all.filter(({ kind }) => kind === 'moduleConfig')],
  ] as const
  const filled = groups.filter(([, entries]) => entries.length > 0)
  return (
    <nav class="sections" aria-label={c.sections}>
      {filled.map(([name, entries]) => (
        <div key={name}>
          <div class="nav-title">{name}</div>
          <ul>
            {entries.map((entry) => (
              <li key={entry.section}>
                <SectionLink entry={entry} source={source} isHere={entry.section === chosen} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  )
}

function SectionLink(props: { entry: Overview['sections'][number]; source: string; isHere: boolean }) {
  const { entry, source, isHere } = props
  const { section, lastChange } = entry
  const isLive = lastChange !== null && lastChange.state !== 'applied'
  return (
    <a class="section-link" href={pathOf(section)} aria-current={isHere ? 'page' : undefined}>
      <span class="grow clip" title={sectionName(section)}>
        {sectionName(section)}
      </span>
      {isLive ? (
        <ChangeTag change={lastChange} />
      ) : (
        isEdited(source, section) && <span class="tag accent">{c.edited}</span>
      )}
      <Icon name="next" />
    </a>
  )
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
  const { state } = overview.lastChange ?? { state: null }
  const isApplying = state === 'applying' || found?.lastChange?.state === 'applying'
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
