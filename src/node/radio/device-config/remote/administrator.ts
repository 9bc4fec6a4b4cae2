import type { LiveSection, RadioDevice } from '../../../../app/device-config/device.ts'
import type {
  PreparedAction,
  RemoteAdmin,
  RemoteChange,
  RemoteStep,
  RemoteTarget,
} from '../../../../app/device-config/remote/port.ts'
import { AppError } from '../../../../app/http/errors.ts'
import { said } from '../../../../app/words/words.ts'
import { DEFAULT_PRESET, type LoraSettings, modulationOf, presetModulation } from '../../../../meshtastic/airtime.ts'
import type { SectionPlan } from '../../../../meshtastic/config/change.ts'
import { type RawSection, SECTION_SCHEMAS, sectionBytes } from '../../../../meshtastic/config/sections.ts'
import { encodeEdit, encodeRestart } from '../../../../meshtastic/link/admin-packets.ts'
import { airtimeOfReading, TYPICAL_PART_BYTES } from '../../../../meshtastic/remote/airtime.ts'
import { listAsks, type RemoteWay } from '../../../../meshtastic/remote/asks.ts'
import { lossOf } from '../../../../shared/mesh/losses.ts'
import type { Clock } from '../../../clock.ts'
import { check, describe, summarize } from '../configurator.ts'
import type { Asker } from './asker.ts'
import { changeRemotely, keepsPrivateKey, REMOTE_TIMINGS } from './change.ts'
import { Ended, isSameKey, type Needs, order, readFirmware, type Reading, readParts, Stopped } from './talk.ts'

/** A radio of this service, as far as it administers others. */
export type Administering = {
  readonly device: RadioDevice
  readonly asker: Asker
  readonly lora: () => LoraSettings | null
}

export type AdministratorOptions = {
  readonly radios: () => readonly Administering[]
  readonly clock: Clock
  /** An action stands differently. */
  onStep(
    action: { readonly id: string; readonly nodeNum: number; readonly section: string | null },
    step: RemoteStep,
  ): void
  /** A whole section was read; without secrets. */
  onRead(nodeNum: number, section: LiveSection): void
  onFirmware(nodeNum: number, version: string): void
}

/** What this process knows of a node. It keeps it in memory, secrets included. */
type Known = {
  readonly sections: Map<string, { readonly raw: RawSection; readonly view: LiveSection }>
  firmware: string | null
  /** It sent its private key, which was not kept. */
  showsPrivateKey: boolean
}

/** Requests are repeated this often: each is already repeated by the radio. */
const ATTEMPTS = 2
/** How long a radio takes to repeat a packet, apart from the time on the air. */
const REPEATS_MS = 20_000
/** A radio transmits a packet up to four times, and the answer may need that, too. */
const REPEATS = 4
const MAX_PATIENCE_MS = 100_000

/** Administers nodes over the mesh: one action at a time with each node. `stop` ends them without an outcome. */
export function createAdministrator(options: AdministratorOptions): RemoteAdmin & { stop(): void } {
  const { radios, clock } = options
  const known = new Map<number, Known>()
  const busy = new Set<number>()
  const waits = new Set<() => void>()
  let isStopped = false

  const knownOf = (nodeNum: number): Known => {
    const found = known.get(nodeNum) ?? { sections: new Map(), firmware: null, showsPrivateKey: false }
    known.set(nodeNum, found)
    return found
  }
  const find = (source: string): Administering => {
    const found = radios().find(({ device }) => device.source === source)
    if (found === undefined) throw new AppError('radio_unavailable', 'No radio is configured')
    return found
  }
  const wait = (ms: number) =>
    new Promise<boolean>((resolve) => {
      const end = (isOver: boolean) => {
        cancel()
        waits.delete(stop)
        resolve(isOver)
      }
      const stop = () => end(false)
      const cancel = clock.after(ms, () => end(true))
      waits.add(stop)
    })
  const keep = (nodeNum: number, raw: RawSection) => {
    const view = describe(raw, clock.now())
    knownOf(nodeNum).sections.set(raw.section, { raw, view })
    options.onRead(nodeNum, view)
  }
  /** Replaces the parts that were read; the others stay as they were. */
  const keepParts = (nodeNum: number, section: string, { parts, hadPrivateKey }: Reading) => {
    const node = knownOf(nodeNum)
    if (section === 'security') node.showsPrivateKey = hadPrivateKey
    const kind = SECTION_SCHEMAS.get(section)?.kind
    if (kind === undefined) return
    const before = node.sections.get(section)?.raw.parts ?? []
    const others = before.filter(({ prefix }) => !parts.some((part) => part.prefix === prefix))
    const all = [...others, ...parts].toSorted((a, b) => a.prefix.localeCompare(b.prefix))
    keep(nodeNum, { section, kind, parts: all })
  }
  const sizes = (nodeNum: number, section: string) => {
    const read = known.get(nodeNum)?.sections.get(section)
    const asks = listAsks(section).map(() => TYPICAL_PART_BYTES)
    // The version of the firmware is asked for, too.
    const before = section === 'security' ? [TYPICAL_PART_BYTES] : []
    if (read === undefined) return [...before, ...asks]
    return [...before, ...read.raw.parts.map((part) => sectionBytes({ ...read.raw, parts: [part] }).length)]
  }

  /** Reserves the node for one action. */
  const prepareAction = (
    target: RemoteTarget,
    section: string | null,
    run: (needs: Needs) => Promise<RemoteStep['state']>,
    isRead = false,
  ): PreparedAction => {
    const { nodeNum, publicKey } = target
    const radio = find(target.source)
    const way = wayOf(radio.device, publicKey)
    if (busy.has(nodeNum)) {
      throw new AppError('configuration_change_in_progress', 'Something else is being done with this node')
    }
    busy.add(nodeNum)
    let isStarted = false
    const execute = async (id: string) => {
      let hasBegun = false
      const tell = (step: RemoteStep) => options.onStep({ id, nodeNum, section }, step)
      const needs: Needs = {
        ask: ({ attempts = ATTEMPTS, ...asked }) =>
          radio.asker.ask({ ...asked, to: nodeNum, way, attempts, patienceMs: patienceOf(radio, target) }),
        wait,
        now: () => clock.now(),
        report(state) {
          hasBegun ||= !isRead && (state === 'sent' || state === 'restarting')
          tell({ state, reason: null, detail: null, differing: [] })
        },
        onFirmware(version) {
          knownOf(nodeNum).firmware = version
          options.onFirmware(nodeNum, version)
        },
      }
      try {
        const state = await run(needs)
        busy.delete(nodeNum)
        tell({ state, reason: null, detail: null, differing: [] })
      } catch (error) {
        busy.delete(nodeNum)
        if (error instanceof Ended) tell(error.outcome)
        else if (error instanceof Stopped) {
          // The connection was closed. At the end of the service the next start tells it.
          if (isStopped) return
          tell((hasBegun ? new Ended('unverified', 'stopped_midway') : new Ended('failed', 'stopped_before')).outcome)
        }
        // Whatever a node answers, it must not stop the service.
        else tell(new Ended('unverified', 'node_error', { detail: String(error) }).outcome)
      }
    }
    return {
      start(id) {
        isStarted = true
        void execute(id)
      },
      release() {
        if (!isStarted) busy.delete(nodeNum)
      },
    }
  }

  return {
    demandWay: (source, publicKey) => void wayOf(find(source).device, publicKey),
    ownKey: (source) => valueOf(find(source).device, 'security', 'publicKey'),
    sections: (nodeNum) => [...(known.get(nodeNum)?.sections.values() ?? [])].map(({ view }) => view),
    sizes,
    prepareRead: (target, section) =>
      prepareAction(
        target,
        section,
        async (needs) => {
          needs.report('sent')
          if (section === 'security') await readFirmware(needs)
          keepParts(target.nodeNum, section, await readParts(needs, section, null))
          return 'done'
        },
        true,
      ),
    prepareChange(target, section, change) {
      const node = known.get(target.nodeNum)
      const base = node?.sections.get(section)?.raw
      if (node === undefined || base === undefined) {
        throw new AppError(
          'configuration_changed',
          'This section has not been read since the service was started: read it first',
        )
      }
      if (section === 'security') demandNewFirmware(node)
      const plan = checkRemote(base, change, node.sections.get('owner')?.raw)
      const steps = encodeEdit([plan.section])
      const run = (needs: Needs) =>
        changeRemotely(needs, { plan, base, steps }, (reading) => keepParts(target.nodeNum, section, reading))
      return { ...summarize(plan), ...prepareAction(target, section, run) }
    },
    prepareReboot: (target) =>
      prepareAction(target, null, async (needs) => {
        needs.report('waiting_for_key')
        const { passkey } = await readFirmware(needs)
        needs.report('sent')
        const told = await order(needs, encodeRestart(), passkey)
        if (told.kind === 'refused') {
          throw new Ended('refused', 'node_error', { detail: told.error })
        }
        needs.report('restarting')
        return awaitRestart(needs, passkey, told.kind === 'delivered')
      }),
    forget: (nodeNum) => void known.delete(nodeNum),
    stop() {
      isStopped = true
      for (const { asker } of radios()) asker.stop()
      for (const end of waits) end()
    },
  }
}

/** Until the node's session has another passkey. */
async function awaitRestart(needs: Needs, passkey: Uint8Array, isConfirmed: boolean): Promise<'done'> {
  const deadline = needs.now() + REMOTE_TIMINGS.returnMs
  let hasAnswered = false
  while (needs.now() < deadline) {
    if (!(await needs.wait(REMOTE_TIMINGS.restartMs))) throw new Stopped()
    const again = await readFirmware(needs).catch((error: unknown) => {
      if (error instanceof Ended) return null
      throw error
    })
    hasAnswered ||= again !== null
    if (again !== null && !isSameKey(again.passkey, passkey)) return 'done'
    if (again !== null && !isConfirmed) throw new Ended('timed_out', 'silent')
  }
  throw hasAnswered ? new Ended('unverified', 'no_restart') : new Ended('lost', 'not_back')
}

/** Throws `radio_unavailable`. */
function wayOf(device: RadioDevice, publicKey: string | null): RemoteWay {
  if (device.sections().length === 0) {
    throw new AppError('radio_unavailable', 'This radio is not connected')
  }
  if (publicKey !== null) return { kind: 'pkc', publicKey: Uint8Array.from(Buffer.from(publicKey, 'base64')) }
  const isOn = device
    .sections()
    .some(({ section, values }) => section === 'security' && values['adminChannelEnabled'] === true)
  const index = isOn ? adminChannelOf(device) : undefined
  if (index === undefined) {
    throw new AppError(
      'radio_unavailable',
      'The public key of this node is not known, and the radio has no admin channel switched on',
    )
  }
  return { kind: 'channel', index }
}

/** The index of the channel that the firmware takes for the admin channel. */
function adminChannelOf(device: RadioDevice): number | undefined {
  const channels: unknown = device.sections().find(({ section }) => section === 'channels')?.values['channels']
  const found = (Array.isArray(channels) ? channels : []).find((each) => {
    const { role, settings } = Object(each)
    return role !== 'DISABLED' && String(Object(settings).name).toLowerCase() === 'admin'
  })
  return found === undefined ? undefined : Number(Object(found).index)
}

function valueOf(device: RadioDevice, section: string, path: string): string | null {
  const value = device.sections().find((each) => each.section === section)?.values[path]
  return typeof value === 'string' && value !== '' ? value : null
}

function patienceOf(radio: Administering, { hops }: RemoteTarget): number {
  const lora = radio.lora()
  const { modulation } = (lora === null ? null : modulationOf(lora)) ?? { modulation: presetModulation(DEFAULT_PRESET) }
  const { ms } = airtimeOfReading([200], { hops, modulation })
  return Math.min(MAX_PATIENCE_MS, REPEATS_MS + REPEATS * ms)
}

function demandNewFirmware({ firmware, showsPrivateKey }: Known): void {
  if (keepsPrivateKey(firmware) && !showsPrivateKey) return
  throw new AppError(
    'invalid_request',
    said(
      'Firmware before 2.8 would need the private key of the node in this section, over the mesh. It has {version}',
      {
        version: firmware ?? '?',
      },
    ),
  )
}

/** Throws what `check` throws, and `confirmation_required` for what can lose the node. */
function checkRemote(base: RawSection, change: RemoteChange, owner: RawSection | undefined): SectionPlan {
  if ('privateKey' in change.secrets) {
    const issue = { path: 'secrets.privateKey', message: 'a private key is never sent over the mesh' }
    throw new AppError('invalid_request', `${issue.path}: ${issue.message}`, { issues: [issue] })
  }
  const plan = check(base, change, { presets: [], owner })
  const losing = plan.changes.filter(({ leaf, after }) => lossOf(base.section, leaf.path, after) !== null)
  const missing = losing.map(({ leaf }) => leaf.path).filter((path) => !change.accept.includes(path))
  if (missing.length > 0) {
    throw new AppError(
      'confirmation_required',
      said('This can lose the node. A second confirmation is required: {missing}', { missing: missing.join(', ') }),
      { confirm: missing },
    )
  }
  return plan
}
