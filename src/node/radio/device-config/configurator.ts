import type { LinkInfo } from '../../../app/mesh/radios/radio.ts'
import type {
  LiveSection,
  PlannedSection,
  PreparedChange,
  PreparedSection,
  RadioDevice,
  SectionChange,
} from '../../../app/device-config/device.ts'
import { createHmac, randomBytes } from 'node:crypto'
import type { ChangeOutcome } from '../../../app/device-config/records.ts'
import { AppError, type Issue, oneLine } from '../../../app/http/errors.ts'
import { encodeEdit } from '../../../meshtastic/link/admin-packets.ts'
import { addDerived, planChange, type SectionInput, type SectionPlan } from '../../../meshtastic/config/change.ts'
import {
  createConfigReader,
  type RadioConfig,
  type RawSection,
  SECTION_SCHEMAS,
  sectionBytes,
} from '../../../meshtastic/config/sections.ts'
import { findUnrenewed } from '../../../meshtastic/config/secrets.ts'
import { findPresetProblem, listRegionPresets, type RegionPresets } from '../../../meshtastic/config/region-presets.ts'
import { viewSection } from '../../../meshtastic/config/values.ts'
import type { FromRadio } from '../../../meshtastic/gen/stream_pb.ts'
import type { RadioEvent } from '../../../meshtastic/radio-event.ts'
import { createPacketIds } from '../../../meshtastic/link/to-radio.ts'
import type { Clock } from '../../clock.ts'
import { createAppEdits } from './app-edits.ts'
import { createEdit } from './edit.ts'
import type { Link } from '../link.ts'
import { createRestart, type Exchange } from './restart.ts'
import { derivePublicKey } from '../sending/x25519.ts'
import type { OwnKind } from '../../../shared/mesh/link-kinds.ts'
import { said } from '../../../app/words/words.ts'
import { lossOf } from '../../../shared/mesh/losses.ts'

export type ConfiguratorOptions = {
  readonly source: string
  readonly kind: OwnKind
  readonly link: Pick<Link, 'info' | 'send' | 'expectRestart' | 'readAgain'>
  readonly clock: Clock
  readonly random: () => number
  /** The radio reported its settings; without secrets. */
  onRead(sections: readonly LiveSection[]): void
  /** `isFinal` false: the outcome may still change. */
  onOutcome(change: BegunChange, outcome: ChangeOutcome, isFinal: boolean): void
}

type BegunChange = { readonly id: string; readonly section: string }

/** The settings of one radio. It keeps them in memory, secrets included, as long as the connection lasts. */
export type Configurator = {
  readonly device: RadioDevice
  /** Takes each complete message. */
  take(message: FromRadio): void
  observe(event: RadioEvent): void
  onState(info: LinkInfo): void
  /**
   * Cleans up after an earlier process that may have ended in the middle of an edit: the radio restarts as soon as it
   * is connected.
   */
  recover(changes: readonly BegunChange[]): void
  /** Whether a change is prepared or under way, or one is being ended. */
  isBusy(): boolean
  /**
   * An app is about to change settings, and the page waits from now on: at most for `ms`, and if it has not begun an edit
   * (`isOpen`), until the radio has been read. False: a change of the page is under way, and the app must not.
   */
  claimForApp(ms: number, isOpen: boolean): boolean
  stop(): void
}

// Without this key, somebody could try out passwords against a revision.
const revisionKey = randomBytes(32)

export function createConfigurator(options: ConfiguratorOptions): Configurator {
  const { source, kind, link, clock, random } = options
  const reader = createConfigReader()
  const appEdits = createAppEdits(clock)
  const nextId = createPacketIds(random)
  let config: RadioConfig | null = null
  let regionPresets: readonly RegionPresets[] = []
  let readAt = 0
  let sections: readonly LiveSection[] = []
  let edit: Exchange | null = null
  let isReserved = false
  let lost: readonly BegunChange[] = []
  /** It tells its settings: a list of nodes alone ends like them. */
  let isReading = false
  let recovery: Exchange | null = null
  const isBusy = () => edit !== null || isReserved || recovery !== null || lost.length > 0

  const current = () => (link.info().state === 'connected' ? config : null)
  const send = (message: Uint8Array, known: RadioConfig) => current() === known && link.send(message)
  const recoverNow = () => {
    const known = current()
    if (known === null || lost.length === 0 || recovery !== null) return
    const onEnd = (_read: RadioConfig, hasRestarted: boolean) => {
      const outcome = { state: 'unknown', differing: [], reason: hasRestarted ? RECOVERED : UNRECOVERED } as const
      for (const change of lost) options.onOutcome(change, outcome, true)
      lost = []
      recovery = null
    }
    recovery = createRestart({ config: known, link, send, clock, nextId, onEnd })
    recovery.start()
  }
  const begin = (plans: readonly SectionPlan[], steps: readonly Uint8Array[], base: RadioConfig, ids: Ids) => {
    const made = createEdit({
      plans,
      steps,
      config: base,
      readAt,
      link,
      send,
      clock,
      nextId,
      onOutcome({ section: { section } }, outcome, isFinal) {
        if (isFinal) edit = null
        options.onOutcome({ id: ids.get(section) ?? '', section }, outcome, isFinal)
      },
    })
    edit = made
    made.start()
  }
  const reveal = () => {
    const known = current()
    if (known === null) throw unread('', link.info())
    return known
  }
  const findSection = (name: string) => {
    const known = current()
    const section = known?.sections.get(name)
    if (known === null || section === undefined) throw unread(name, known === null ? link.info() : null)
    return section
  }
  const prepare = (asked: ReadonlyMap<string, SectionChange>): PreparedChange => {
    const changes = inOrder(asked).map(([name, change]) => ({ section: findSection(name), change }))
    const base = reveal()
    const owner = ownerAfter(base, asked)
    const all = changes.map(({ section, change }) => check(section, change, { presets: regionPresets, owner }))
    const plans = all.filter((plan) => plan.changes.length > 0)
    // Done before anything is recorded, because a change that cannot be sent does not count.
    const steps = encodeEdit(plans.map(({ section }) => section))
    if (edit !== null || isReserved || lost.length > 0) throw new AppError('configuration_change_in_progress')
    if (appEdits.isGoing()) throw new AppError('configuration_change_in_progress', BY_AN_APP)
    isReserved = true
    const release = () => {
      isReserved = false
    }
    return {
      sections: plans.map(summarize),
      start(ids) {
        release()
        begin(plans, steps, base, ids)
      },
      release,
    }
  }
  const plan: RadioDevice['plan'] = (asked) => {
    const owner = ownerAfter(reveal(), asked)
    return inOrder(asked).map(([name, input]) => examine(findSection(name), input, { presets: regionPresets, owner }))
  }
  return {
    device: {
      source,
      kind,
      nodeNum: () => link.info().radio?.nodeNum ?? null,
      sections: () => (current() === null ? [] : sections),
      reveal,
      regionPresets: () => (current() === null ? [] : regionPresets),
      plan,
      prepare,
    },
    take(message) {
      const { case: variant, value } = message.payloadVariant
      if (variant === 'myInfo') {
        regionPresets = []
        isReading = true
        appEdits.onReading()
      }
      if (variant === 'regionPresets') regionPresets = listRegionPresets(value)
      const read = reader.take(message)
      if (read === null || !isReading) return
      isReading = false
      appEdits.onRead()
      config = read
      readAt = clock.now()
      const at = readAt
      sections = [...read.sections.values()].map((section) => describe(section, at))
      options.onRead(sections)
      edit?.onRead(read)
      recovery?.onRead(read)
    },
    observe(event) {
      edit?.observe(event)
      recovery?.observe(event)
    },
    onState({ state }) {
      if (state !== 'connected') {
        config = null
        sections = []
      }
      edit?.onState(state)
      recovery?.onState(state)
      recoverNow()
    },
    isBusy,
    claimForApp(ms, isOpen) {
      if (isBusy()) return false
      appEdits.note(ms, isOpen)
      return true
    },
    recover(changes) {
      lost = [...lost, ...changes]
      recoverNow()
    },
    stop() {
      edit?.stop()
      recovery?.stop()
      lost = []
    },
  }
}

const BY_AN_APP = said('A Meshtastic app is changing the settings of this radio. Wait until it has finished')
const RECOVERED =
  'the service was stopped while the change was made; the radio has restarted since, with the settings that it had saved'
const UNRECOVERED =
  'the service was stopped while the change was made; the radio has not restarted since: its settings may be in the middle of an edit until it does'

/** A section as it may be shown, with its revision. */
export function describe(section: RawSection, readAt: number): LiveSection {
  const { section: name, kind } = section
  const revision = createHmac('sha256', revisionKey).update(sectionBytes(section)).digest('base64url').slice(0, 22)
  return { section: name, kind, readAt, revision, ...viewSection(section) }
}

function unread(section: string, link: LinkInfo | null): AppError {
  const isConnected = link?.state === 'connected'
  const why =
    link === null || (isConnected && link.reason === null)
      ? said('The radio did not report its section {section}', { section })
      : isConnected
        ? said('The settings cannot be read: {reason}', { reason: link.reason ?? '' })
        : said('The radio is not connected: {reason}', { reason: link.reason ?? link.state })
  return new AppError('radio_unavailable', why)
}

/** The ids of changes by section. */
type Ids = ReadonlyMap<string, string>

/**
 * The owner first, who decides which regions are allowed, and security last, after which a radio may refuse the rest.
 */
function inOrder<T>(asked: ReadonlyMap<string, T>): (readonly [name: string, change: T])[] {
  const ranks = new Map([...SECTION_SCHEMAS.keys()].map((name, at) => [name, at]))
  const rank = (name: string) =>
    name === 'owner' ? -2 : name === 'channels' ? -1 : name === 'security' ? Infinity : (ranks.get(name) ?? 0)
  return [...asked].toSorted(([a], [b]) => rank(a) - rank(b))
}

/** The owner as the same edit leaves it. */
function ownerAfter({ sections }: RadioConfig, asked: ReadonlyMap<string, SectionInput>): RawSection | undefined {
  const [owner, change] = [sections.get('owner'), asked.get('owner')]
  if (owner === undefined || change === undefined) return owner
  const planned = planChange(owner, change)
  const [part] = planned.ok ? planned.plan.section.parts : []
  return part === undefined ? owner : { ...owner, parts: [part] }
}

type Allowed = { readonly presets: readonly RegionPresets[]; readonly owner: RawSection | undefined }

/** Throws `configuration_changed`, `invalid_request`, `secret_required`, `confirmation_required`. */
export function check(section: RawSection, change: SectionChange, { presets, owner }: Allowed): SectionPlan {
  if (change.revision !== null && change.revision !== describe(section, 0).revision) {
    throw new AppError('configuration_changed', 'The section has changed since it was read')
  }
  const planned = planChange(section, change)
  if (!planned.ok) {
    const issues = shortened(planned.issues)
    throw new AppError('invalid_request', oneLine(issues), { issues })
  }
  const issues = refusals(planned.plan, { presets, owner })
  if (issues.length > 0) throw new AppError('invalid_request', oneLine(issues), { issues })
  const secrets = unrenewed(section, planned.plan)
  if (secrets.length > 0) throw new AppError('secret_required', oneLine(secrets), { issues: secrets })
  const missing = Object.keys(risksOf(planned.plan)).filter((path) => !change.confirm.includes(path))
  if (missing.length > 0) {
    throw new AppError(
      'confirmation_required',
      said('Confirmation required: {missing}', { missing: missing.join(', ') }),
      { confirm: missing },
    )
  }
  return completeKeys(section, planned.plan)
}

/** What `check` would find, without a word about confirmations. */
function examine(section: RawSection, input: SectionInput, allowed: Allowed): PlannedSection {
  const planned = planChange(section, input)
  if (!planned.ok) {
    const nothing = { fields: [], secretsChanged: [], before: {}, after: {}, risks: {} }
    return { section: section.section, ...nothing, issues: shortened(planned.issues) }
  }
  const issues = [...refusals(planned.plan, allowed), ...unrenewed(section, planned.plan)]
  return { ...summarize(planned.plan), risks: risksOf(planned.plan), issues }
}

function shortened(issues: readonly Issue[]): Issue[] {
  return issues.slice(0, 50).map(({ path, message }) => ({ path: path.slice(0, 200).toWellFormed(), message }))
}

function refusals(plan: SectionPlan, { presets, owner }: Allowed): Issue[] {
  const problem = findPresetProblem(presets, plan, owner)
  return problem === null ? [] : [{ path: `values.${problem.field}`, message: problem.message }]
}

function risksOf({ section: { section }, changes }: SectionPlan): PlannedSection['risks'] {
  return Object.fromEntries(
    changes.flatMap(({ leaf: { path, field }, after }) => {
      const risk = field.risk ?? (lossOf(section, path, after) === null ? null : 'link')
      return risk === null ? [] : [[path, risk]]
    }),
  )
}

/** Somebody who may write settings must not learn a secret by sending it to another server. */
function unrenewed(section: RawSection, plan: SectionPlan): Issue[] {
  return findUnrenewed(section, plan.changes).map(({ path, secret }) => ({
    path: `secrets.${secret}`,
    message: `changing ${path} requires this secret to be entered again or cleared: the radio would send it to another destination`,
  }))
}

/** A radio accepts any public key, even one that does not belong to the private one. */
function completeKeys(section: RawSection, plan: SectionPlan): SectionPlan {
  const key = plan.changes.find(({ leaf }) => section.section === 'security' && leaf.path === 'privateKey')?.value
  return key instanceof Uint8Array ? addDerived(section, plan, 'publicKey', derivePublicKey(key)) : plan
}

/** What a change is about, without secrets. */
export function summarize({ section: { section }, changes }: SectionPlan): PreparedSection {
  const open = changes.filter(({ leaf }) => !leaf.field.secret)
  return {
    section,
    fields: changes.map(({ leaf }) => leaf.path),
    secretsChanged: changes.filter(({ leaf }) => leaf.field.secret).map(({ leaf }) => leaf.path),
    before: Object.fromEntries(open.map(({ leaf, before }) => [leaf.path, before])),
    after: Object.fromEntries(open.map(({ leaf, after }) => [leaf.path, after])),
  }
}
