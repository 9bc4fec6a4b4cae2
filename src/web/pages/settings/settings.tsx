import type { InferResponseType } from 'hono/client'
import type { ComponentChildren, JSX } from 'preact'
import { api, ask } from '../../api.ts'
import { bytes, count, decimal, duration, humanize } from '../../format.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { Actions, Field, handleForm, Submit } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { can, status, user } from '../../state/session.ts'
import { settingsTexts } from '../../strings/system/settings.ts'
import { t } from '../../strings.ts'
import { MapTilesCard } from './map-tiles.tsx'
import { ProvidersCard } from './providers.tsx'
import { MAX_ACTIVE_SECONDS, MAX_RETENTION_DAYS } from '../../../shared/limits.ts'
import { namesOf } from '../../../shared/names.ts'

type Settings = InferResponseType<typeof api.settings.$get>
type Retention = InferResponseType<typeof api.settings.retention.$get>
type Entry = readonly [name: string, value: number]

type NoNumber = { [Name in keyof Settings]: Settings[Name] extends number ? never : Name }[keyof Settings]
type CardProps = { readonly settings: Settings; onSaved(settings: Settings): void }

/** Settings that are no number, each with a card of its own. */
const CARDS: Readonly<Record<NoNumber, (props: CardProps) => JSX.Element>> = { mapTiles: MapTilesCard }

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
          {namesOf(CARDS).map((name) => {
            const SettingCard = CARDS[name]
            return <SettingCard settings={settings} onSaved={(next) => (data.value = next)} key={name} />
          })}
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

type FormProps = CardProps & { readonly retention: Retention | null }

/** All settings of the API: one that this page does not know yet gets a generated name. */
function SettingsForm({ settings, retention, onSaved }: FormProps) {
  const { busy, error, run } = useAction()
  const isFixed = !can('settings', 'write')
  const all = Object.entries(settings).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
  const submit = handleForm(async (text) => {
    const read = (name: string) => Math.round(Number(text(name)) * (unitOf(name)?.size ?? 1))
    // Only the changed fields, because somebody else may be changing the others.
    const json: Partial<Settings> = Object.fromEntries(
      all.filter(([name, value]) => read(name) !== value).map(([name]) => [name, read(name)]),
    )
    await run(async () => {
      onSaved(await ask(api.settings.$put({ json })))
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
        <Card title={settingsTexts.activity}>{draw(all.filter(isActivity))}</Card>
        {others.length > 0 && <Card title={settingsTexts.other}>{draw(others)}</Card>}
      </div>
      <Failure error={error.value} />
      {!isFixed && (
        <Actions>
          <Submit busy={busy.value} idle={t.common.save} working={t.common.saving} />
        </Actions>
      )}
    </form>
  )
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
