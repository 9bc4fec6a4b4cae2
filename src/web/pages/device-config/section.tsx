import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { isUnderWay } from '../../../shared/mesh/change-states.ts'
import { api, askAs } from '../../api.ts'
import { capital } from '../../format.ts'
import type { Loaded } from '../../state/load.ts'
import { Age } from '../../parts/age.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Facts } from '../../parts/page.tsx'
import { can } from '../../state/session.ts'
import { c, SECTIONS } from '../../strings/system/configuration.ts'
import { ChangeNotice } from './change.tsx'
import { editsOf, keepEdits, usePruning } from './edits.ts'
import { SettingField } from './field.tsx'
import {
  type Change,
  channelsOf,
  type Destination,
  differencesOf,
  type Edits,
  fits,
  isReadable,
  type Leaf,
  leavesOf,
  type Overview,
  presetsFor,
  rawOf,
  type Section,
  unrenewedOf,
  valueAt,
} from './model.ts'
import { Offline } from './offline.tsx'
import { type Refusal, SaveBar } from './save.tsx'
import { SecretField } from './secret.tsx'
import { ChannelButtons } from './transfer/buttons.tsx'
import { describe, fieldHelp, fieldName, inOrder, sectionName } from './words.ts'

type Props = { section: Section; overview: Overview; loaded: Loaded<Section>; onSent(): void }

/** One section of a radio's settings, with a form for those who may change it. */
export function SectionPane(props: Props) {
  const { section, overview } = props
  const mayWrite = can('configuration', 'write')
  const busyWith = isUnderWay(overview.lastChange?.state) ? (overview.lastChange?.section ?? null) : null
  const isApplying = busyWith === section.section || isUnderWay(section.lastChange?.state)
  return (
    <section class="stack" aria-labelledby="section-name">
      <div>
        <h2 id="section-name" class="section-name">
          {sectionName(section.section)}
        </h2>
        <p class="faint">
          {SECTIONS[section.section]?.[1]} {c.readAt} <Age at={section.readAt} />.
        </p>
        <ChangeNotice section={section} />
      </div>
      {section.section === 'channels' && mayWrite && section.editable && (
        <ChannelButtons
          section={section}
          onSent={() => {
            props.onSent()
            void props.loaded.reload()
          }}
        />
      )}
      {!mayWrite && <p class="faint">{c.readOnly}</p>}
      {!section.editable && !isApplying && <Offline section={section} byCollector={overview.byCollector} />}
      {busyWith !== null && busyWith !== section.section && <div class="notice">{c.busy(sectionName(busyWith))}</div>}
      {mayWrite ? (
        <SectionForm
          {...props}
          destination={overview.byCollector ? COLLECTED : CONNECTED}
          isApplying={isApplying}
          isFixed={!section.editable || isApplying || busyWith !== null}
        />
      ) : (
        <SectionFacts section={section} />
      )}
    </section>
  )
}

/** A radio of this service. */
const CONNECTED: Destination = {
  airtime: null,
  sent: c.sent,
  nothing: c.nothing,
  async put({ section, source }, json) {
    const asked = { param: { section }, query: { source }, json }
    return (await askAs<{ change: Change | null }>(api.configuration[':section'].$put(asked))).change
  },
}

/** A radio of a collector: what becomes of it is told later. */
const COLLECTED: Destination = { ...CONNECTED, sent: c.asked }

/** For users with only the read permission. */
export function SectionFacts({ section }: { section: Section }) {
  return (
    <Blocks section={section}>
      {(leaves) => (
        <Facts
          entries={leaves.map((leaf) => {
            const secret = section.secrets[leaf.path]
            if (secret !== undefined) {
              const state = secret.isSet ? c.secretSet : c.secretNotSet
              return [fieldName(section.section, leaf), secret.kind === null ? state : c.secretKinds[secret.kind]]
            }
            const raw = rawOf(leaf.field, valueAt(section, leaf))
            return [fieldName(section.section, leaf), describe(section.section, leaf, raw)]
          })}
        />
      )}
    </Blocks>
  )
}

/** All fields in one card. Channels have a card each, and those in use are open. */
function Blocks(props: { section: Section; children(leaves: readonly Leaf[]): ComponentChildren }) {
  const { section, children } = props
  const leaves = inOrder(
    section.section,
    leavesOf(section).filter(({ field }) => field.path !== 'channels.*.index'),
  )
  if (section.kind !== 'channels') return <div class="card">{children(leaves)}</div>
  return (
    <>
      {channelsOf(section).map(({ index, role }) => {
        const own = leaves.filter(({ channel }) => channel === index)
        const nameLeaf = own.find(({ field }) => field.path.endsWith('.name'))
        const name = nameLeaf === undefined ? '' : rawOf(nameLeaf.field, valueAt(section, nameLeaf))
        return (
          <details class="card channel" open={role !== 'DISABLED'} key={index}>
            <summary>
              <strong>{c.channel(index)}</strong> {name}{' '}
              {role === 'DISABLED' && <span class="faint">{c.channelUnused}</span>}
            </summary>
            {children(own)}
          </details>
        )
      })}
    </>
  )
}

type FormProps = Pick<Props, 'section' | 'onSent'> & {
  loaded: Pick<Loaded<unknown>, 'reload'>
  destination: Destination
  isApplying: boolean
  isFixed: boolean
}

/** A form for a section, and what is needed to send what was changed in it. */
export function SectionForm({ section, destination, loaded, onSent, isApplying, isFixed }: FormProps) {
  const { source, section: name } = section
  const edits = editsOf(source, name)
  const refused = useSignal<Refusal | null>(null)
  const differences = differencesOf(section, edits)
  const box = useRef<HTMLFormElement>(null)
  usePruning(section)
  useEffect(() => {
    if (refused.value !== null) box.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [refused.value])
  const unrenewed = unrenewedOf(section, differences)
  const error = (leaf: Leaf) =>
    unrenewed.has(leaf.path) ? c.renew(fieldName(name, leaf)) : errorAt(leaf, edits, refused.value)
  const set = (changes: Partial<Edits>) => keepEdits(source, name, { ...edits, ...changes })
  return (
    <form ref={box} class="stack" noValidate onSubmit={(event) => event.preventDefault()}>
      <fieldset class="stack" disabled={isFixed}>
        <Blocks section={section}>
          {(leaves) => (
            <div class="settings">
              {leaves.map((leaf) => (
                <AnyField section={section} leaf={leaf} edits={edits} error={error(leaf)} set={set} key={leaf.path} />
              ))}
            </div>
          )}
        </Blocks>
      </fieldset>
      {section.fields.some(({ risk }) => risk !== null) && (
        <p class="about risk-legend">
          <span class="risk">
            <Icon name="warning" />
          </span>
          {c.riskLegend}
        </p>
      )}
      {differences.length > 0 && !isApplying && (
        <SaveBar
          section={section}
          destination={destination}
          differences={differences}
          edits={edits}
          refused={refused}
          loaded={loaded}
          unrenewed={unrenewed}
          isFixed={isFixed}
          onSent={onSent}
        />
      )}
    </form>
  )
}

function errorAt(leaf: Leaf, edits: Edits, refused: Refusal | null): string | null {
  const raw = edits.values.get(leaf.path)
  if (raw !== undefined && !isReadable(leaf.field, raw)) return c.notANumber
  if (raw !== undefined && !fits(leaf.field, raw)) return c.maxBytes(leaf.field.maxBytes ?? 0)
  const isSame = (now: Edits, then: Edits) =>
    now.values.get(leaf.path) === then.values.get(leaf.path) &&
    now.secrets.get(leaf.path) === then.secrets.get(leaf.path)
  if (refused === null || !isSame(edits, refused.edits)) return null
  const paths = [`values.${leaf.path}`, `secrets.${leaf.path}`]
  const found = refused.issues.find(({ path }) => paths.includes(path))
  return found === undefined ? null : capital(found.message)
}

type AnyProps = {
  section: Section
  leaf: Leaf
  edits: Edits
  error: string | null
  set(changes: Partial<Edits>): void
}

function AnyField({ section, leaf, edits, error, set }: AnyProps) {
  const { path, field } = leaf
  if (field.secret) {
    const onChange = (value: string | null | undefined) => {
      const secrets = new Map(edits.secrets)
      if (value === undefined) secrets.delete(path)
      else secrets.set(path, value)
      set({ secrets })
    }
    const value = edits.secrets.get(path)
    const state = section.secrets[path]
    return <SecretField {...{ section: section.section, leaf, state, value, error, onChange }} />
  }
  const present = rawOf(field, valueAt(section, leaf))
  if (field.readOnly) {
    const text = describe(section.section, leaf, present)
    return (
      <div class="setting wide-setting">
        <strong>{fieldName(section.section, leaf)}</strong>
        <span class="mono break">{text}</span>
        <div class="about">{fieldHelp(section.section, leaf)}</div>
      </div>
    )
  }
  const value = edits.values.get(path) ?? present
  const offered = presetsFor(section, leaf, edits)
  const onChange = (raw: string | boolean) => {
    const values = new Map(edits.values)
    if (raw === present) values.delete(path)
    else values.set(path, raw)
    set({ values })
  }
  return (
    <SettingField
      section={section.section}
      leaf={offered === null ? leaf : { ...leaf, field: { ...field, options: [...offered] } }}
      value={value}
      isChanged={value !== present}
      error={error}
      onChange={onChange}
    />
  )
}
