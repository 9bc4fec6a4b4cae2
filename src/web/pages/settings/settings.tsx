import './settings.css'
import type { InferResponseType } from 'hono/client'
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { api, ask } from '../../api.ts'
import { bytes, count, decimal, duration, humanize } from '../../format.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { Field, handleForm, Submit } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { can, refreshStatus, status, user } from '../../state/session.ts'
import { settingsTexts } from '../../strings/system/settings.ts'
import { APP_NAME, t } from '../../strings.ts'
import { areOtherHosts, MapTilesCard, readTiles, type TilesKind } from './map-tiles.tsx'
import { ProvidersCard } from './providers.tsx'
import { ServiceCard } from './service.tsx'
import { MAX_ACTIVE_SECONDS, MAX_MESH_NAME, MAX_RETENTION_DAYS } from '../../../shared/limits.ts'
import { namesOf } from '../../../shared/names.ts'

type Settings = InferResponseType<typeof api.settings.$get>
type Retention = InferResponseType<typeof api.settings.retention.$get>
type Entry = readonly [name: string, value: number]
type NoNumber = { [Name in keyof Settings]: Settings[Name] extends number ? never : Name }[keyof Settings]

const MINUTE_SECONDS = 60

export function SettingsPage() {
  const { data, error, reload } = useLoad(() => ask(api.settings.$get()), [])
  const settings = data.value
  // How long a setting is really kept depends on what is set.
  const kept = useLoad(() => ask(api.settings.retention.$get()), [settings])
  return (
    <Page title={settingsTexts.title}>
      <Failure error={error.value} retry={reload} />
      {settings !== null && (
        <>
          <SettingsForm settings={settings} retention={kept.data.value} onSaved={(next) => (data.value = next)} />
          {user.value?.isAdmin && <ServiceCard />}
          {user.value?.isAdmin && status.value?.oidcEnabled && <ProvidersCard />}
        </>
      )}
    </Page>
  )
}

/**
 * The unit in which people set it, by the end of the API's name, and its limits: days stay days, seconds become
 * minutes.
 */
function unitOf(name: string): { name: string; size: number; most: number } | null {
  if (name.endsWith('Days')) return { name: settingsTexts.days, size: 1, most: MAX_RETENTION_DAYS }
  return name.endsWith('Seconds')
    ? { name: settingsTexts.minutes, size: MINUTE_SECONDS, most: MAX_ACTIVE_SECONDS / MINUTE_SECONDS }
    : null
}

function labelOf(name: string): string {
  const names: Readonly<Record<string, string>> = settingsTexts.names
  return names[name] ?? humanize(name.replaceAll(/([A-Z])/g, ' $1'))
}

/** What is kept shorter than set, and what is deleted too late. */
function aboutTable(retention: Retention | null, setting: string): string[] {
  const table = retention?.tables.find((each) => each.setting === setting)
  if (table === undefined) return []
  const { keptDays, reason, maxRows, isLate, lagSeconds } = table
  return [
    ...(reason === null
      ? []
      : [settingsTexts.kept(`${decimal(keptDays)} ${settingsTexts.days}`, reason, count(maxRows))]),
    ...(isLate && lagSeconds !== null ? [settingsTexts.late(duration(lagSeconds))] : []),
  ]
}

/** Says that the database is getting too large for its disk. */
function Room({ retention }: { readonly retention: Retention | null }) {
  const { usedBytes = null, limitBytes = null, isLarge = false } = retention?.database ?? {}
  if (!isLarge || usedBytes === null || limitBytes === null) return null
  const part = `${Math.floor((usedBytes / limitBytes) * 100)} %`
  return <p class="bad">{settingsTexts.large(part, bytes(limitBytes))}</p>
}

type FormProps = {
  readonly settings: Settings
  readonly retention: Retention | null
  onSaved(settings: Settings): void
}

/** All settings of the API: a number that this page does not know yet gets a generated name. */
function SettingsForm({ settings, retention, onSaved }: FormProps) {
  const { busy, error, run } = useAction()
  const tilesKind = useSignal<TilesKind>(settings.mapTiles.kind)
  const isFixed = !can('settings', 'write')
  const all = Object.entries(settings).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
  const submit = handleForm(async (text) => {
    const json = changesOf(settings, text, tilesKind.peek())
    await run(async () => {
      const saved = await ask(api.settings.$put({ json }))
      if (json.meshName !== undefined) await refreshStatus()
      if (areOtherHosts(settings.mapTiles, saved.mapTiles)) location.reload()
      else onSaved(saved)
      say(settingsTexts.saved)
    })
  })
  const isRetention = ([name]: Entry) => name.endsWith('RetentionDays')
  const isActivity = ([name]: Entry) => name === 'nodeActiveSeconds'
  const others = all.filter((entry) => !isRetention(entry) && !isActivity(entry))
  const draw = (entries: readonly Entry[]): ComponentChildren => (
    <div class="number-fields">
      {entries.map(([name, value]) => (
        <NumberField name={name} value={value} isFixed={isFixed} about={aboutTable(retention, name)} key={name} />
      ))}
    </div>
  )
  return (
    <form onSubmit={submit} class="stack">
      {isFixed && <p class="faint">{settingsTexts.readOnly}</p>}
      <div class="cards of-fields">
        <Card title={settingsTexts.retention} help={settingsTexts.retentionHelp}>
          {draw(all.filter(isRetention))}
          <Room retention={retention} />
        </Card>
        <Card title={settingsTexts.mesh}>
          <Field
            label={settingsTexts.meshName}
            name="meshName"
            hint={settingsTexts.meshNameHint(APP_NAME)}
            defaultValue={settings.meshName ?? ''}
            readOnly={isFixed}
            maxLength={MAX_MESH_NAME}
          />
          {draw(all.filter(isActivity))}
        </Card>
        <MapTilesCard tiles={settings.mapTiles} kind={tilesKind} isFixed={isFixed} />
        {others.length > 0 && <Card title={settingsTexts.other}>{draw(others)}</Card>}
      </div>
      <Failure error={error.value} />
      {!isFixed && (
        <div class="save-all">
          <Submit busy={busy.value} idle={t.common.save} working={t.common.saving} />
        </div>
      )}
    </form>
  )
}

/** How the settings that are no number are read from the form. */
const READ: { readonly [Name in NoNumber]: (text: (name: string) => string, kind: TilesKind) => Settings[Name] } = {
  meshName: (text) => (text('meshName').trim() === '' ? null : text('meshName').trim()),
  mapTiles: (text, kind) => readTiles(kind, text),
}

/** Only the changed settings, because somebody else may be changing the others. */
function changesOf(settings: Settings, text: (name: string) => string, tilesKind: TilesKind): Partial<Settings> {
  const numbers = Object.entries(settings).flatMap(([name, value]) => {
    if (typeof value !== 'number') return []
    const read = Math.round(Number(text(name)) * (unitOf(name)?.size ?? 1))
    return read === value ? [] : [[name, read] as const]
  })
  const others = namesOf(READ).flatMap((name) => {
    const read = READ[name](text, tilesKind)
    return JSON.stringify(read) === JSON.stringify(settings[name]) ? [] : [[name, read] as const]
  })
  return Object.fromEntries([...numbers, ...others])
}

type NumberFieldProps = { name: string; value: number; isFixed: boolean; about: readonly string[] }

function NumberField({ name, value, isFixed, about }: NumberFieldProps) {
  const unit = unitOf(name)
  return (
    <Field
      label={labelOf(name)}
      name={name}
      type="number"
      min={unit === null ? 0 : 1}
      {...(unit !== null && { max: unit.most })}
      hint={[...(unit === null ? [] : [unit.name]), ...about].join(' · ')}
      defaultValue={value / (unit?.size ?? 1)}
      readOnly={isFixed}
      {...(unit !== null && unit.size > 1 && { step: 'any' })}
      required
    />
  )
}
