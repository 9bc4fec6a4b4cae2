import { englishOf } from '../../language.ts'
import { mayOpen, ROUTES } from '../../pages/routes.tsx'
import { has, isAdmin, status, user } from '../../state/session.ts'
import { t } from '../../strings.ts'
import { alertTexts } from '../../strings/alerts.ts'
import { accountTexts } from '../../strings/people/account.ts'
import { embedTexts } from '../../strings/people/embed.ts'
import { factorTexts } from '../../strings/people/factors.ts'
import { mailTexts } from '../../strings/people/mail.ts'
import { quietTexts } from '../../strings/people/quiet-hours.ts'
import { backupTexts } from '../../strings/system/backups.ts'
import { FIELDS } from '../../strings/system/configuration-fields.ts'
import { c, SECTIONS } from '../../strings/system/configuration.ts'
import { settingsTexts } from '../../strings/system/settings.ts'
import { systemTexts } from '../../strings/system/system.ts'

/** A part of a page that has a name. */
export type Setting = {
  readonly name: string
  /** The same in English, or in other words. */
  readonly others: readonly string[]
  /** The page, and the part of it. */
  readonly where: string
  readonly path: string
  /** What the page calls it, or the part of it that is always shown; none: the page itself. */
  readonly shownAs: readonly string[]
  /** More words about it, in both languages. */
  readonly about: string
}

/** The settings on pages that the user may open. */
export function settingsHere(): readonly Setting[] {
  return [...ofAccount(), ...ofAlerts(), ...ofService(), ...ofAdministration(), ...ofRadio()].filter(({ path }) =>
    ROUTES.some(({ pattern, need }) => pattern.test(path) && mayOpen(need)),
  )
}

/** Names in the language of the page and in English. */
type Names<W extends object> = (words: W) => string

/** Makes settings of one page from its texts. */
function partsOf<W extends object>(words: W, path: string, page: string) {
  return (name: Names<W>, about: Names<W> = () => '', part: Names<W> | null = null): Setting => {
    const partName = part === null ? '' : part(words)
    return {
      name: name(words),
      others: [name(englishOf(words))],
      where: partName === '' ? page : `${page} · ${partName}`,
      path,
      shownAs: [name(words), partName].filter((each) => each !== ''),
      about: `${about(words)} ${about(englishOf(words))}`,
    }
  }
}

function ofAccount(): readonly Setting[] {
  const me = user.value
  if (me === null) return []
  const page = t.nav.account
  const isLocal = me.authProvider === 'local' && !status.value?.localAuthDisabled
  const hasProviders = (status.value?.providers.length ?? 0) > 0
  const shell = partsOf(t.shell, '/account', page)
  const account = partsOf(accountTexts, '/account', page)
  const quiet = partsOf(quietTexts, '/account', page)
  return [
    shell((words) => words.language),
    shell(
      (words) => words.theme,
      ({ themes }) => `${themes.light} ${themes.dark}`,
    ),
    shell(
      (words) => words.units,
      ({ unitSystems }) => Object.values(unitSystems).join(' '),
    ),
    shell(
      (words) => words.clock,
      ({ clocks }) => Object.values(clocks).join(' '),
    ),
    quiet(
      (words) => words.title,
      (words) => words.help,
    ),
    quiet(
      (words) => words.timeZone,
      () => '',
      (words) => words.title,
    ),
    account((words) => words.passwordTitle),
    ...(isLocal ? [partsOf(mailTexts, '/account', page)((words) => words.title)] : []),
    ...(isLocal
      ? [
          partsOf(
            factorTexts,
            '/account',
            page,
          )(
            (words) => words.title,
            (words) => words.help,
          ),
        ]
      : []),
    ...(hasProviders ? [account((words) => words.link)] : []),
    account((words) => words.sessions),
    account((words) => words.signIns),
    account((words) => words.tokens),
  ]
}

function ofAlerts(): readonly Setting[] {
  const alert = partsOf(alertTexts, '/alerts', t.nav.alerts)
  return [
    alert(
      (words) => words.rules,
      ({ rulesHelp, presets }) => `${rulesHelp} ${Object.values(presets).join(' ')}`,
    ),
    alert(
      (words) => words.destinationsTitle,
      (words) => words.destinationsHelp,
    ),
  ]
}

type SettingsTexts = typeof settingsTexts

function ofService(): readonly Setting[] {
  const setting = partsOf(settingsTexts, '/settings', t.nav.settings)
  const retention = setting(
    (words) => words.retention,
    (words) => words.retentionHelp,
  )
  const ofMesh: Names<SettingsTexts> = ({ mesh }) => mesh
  const { nodeActiveSeconds: _, ...kept } = settingsTexts.names
  return [
    { ...retention, others: [...retention.others, systemTexts.retention, englishOf(systemTexts).retention] },
    ...Object.keys(kept).map((key) =>
      setting(
        ({ names }) => Object.entries(names).find(([name]) => name === key)?.[1] ?? '',
        () => '',
        (words) => words.retention,
      ),
    ),
    setting(
      ({ meshName }) => meshName,
      () => '',
      ofMesh,
    ),
    setting(
      ({ names }) => names.nodeActiveSeconds,
      () => '',
      ofMesh,
    ),
    setting(
      ({ tiles }) => tiles.title,
      ({ tiles }) => `${tiles.source} ${tiles.help}`,
    ),
    ...(isAdmin.value
      ? [
          setting(
            ({ service }) => service.title,
            ({ service }) => `${service.help} ${service.version} ${service.database} ${service.mail}`,
          ),
        ]
      : []),
    ...(isAdmin.value && status.value?.oidcEnabled ? [setting(({ providers }) => providers.title)] : []),
  ]
}

function ofAdministration(): readonly Setting[] {
  return [
    ...(has('backups') ? [partsOf(backupTexts, '/backups', t.nav.backups)(({ schedule }) => schedule)] : []),
    partsOf(
      embedTexts,
      '/public-access',
      t.nav.publicAccess,
    )(
      ({ title }) => title,
      ({ help }) => help,
    ),
  ]
}

/** Every section that this version knows, and every field with a name. A radio may lack some. */
function ofRadio(): readonly Setting[] {
  const page = t.nav.configuration
  const sections = Object.entries(SECTIONS).map(([section, [name, help]]): Setting => {
    const [english, englishHelp] = englishOf(SECTIONS)[section] ?? ['', '']
    return {
      name,
      others: [english],
      where: page,
      path: `/configuration/${section}`,
      shownAs: [],
      about: `${help} ${englishHelp}`,
    }
  })
  const fields = Object.entries(FIELDS).flatMap(([key, [name, help = '']]): readonly Setting[] => {
    const [section = ''] = key.split('.')
    const part = SECTIONS[section]?.[0]
    // The switch of a whole section is found by the name of that.
    if (part === undefined || name === c.onOff || key === 'channels.index') return []
    const [english, englishHelp = ''] = englishOf(FIELDS)[key] ?? ['']
    const about = `${help} ${englishHelp}`
    return [
      {
        name,
        others: [english],
        where: `${page} · ${part}`,
        path: `/configuration/${section}`,
        shownAs: [name],
        about,
      },
    ]
  })
  // Two fields of a section may have the same name, and the first of them is found.
  return [...sections, ...new Map(fields.map((field) => [`${field.path} ${field.name}`, field])).values()]
}
