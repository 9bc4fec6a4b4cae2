import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { audit } from '../../app/audit/audit.ts'
import type { Ports } from '../../app/base/context.ts'
import { changeByCommand } from '../../app/device-config/collected.ts'
import { AppError } from '../../app/http/errors.ts'
import { type Command, commandSchema, contentSchemas } from '../../app/mesh/downlink/contents.ts'
import {
  isPacketKnown,
  noteRefusal,
  noteTold,
  readNews,
  type TakenCommand,
  writeDown,
} from '../../app/mesh/downlink/taken.ts'
import { configuredRadios, readChannelTable } from '../../app/mesh/radios/channel-table.ts'
import type { GivenCommand, LinkInfo, Radio } from '../../app/mesh/radios/radio.ts'
import { requestFor } from '../../app/mesh/sending/request.ts'
import { type SendCtx, sendMessage } from '../../app/mesh/sending/send.ts'
import { requestTraceroute } from '../../app/mesh/sending/traceroute.ts'
import { backOff } from '../../shared/back-off.ts'
import { COMMAND_KINDS, COMMAND_MS, type CommandKind, KIND_OF_COMMAND, POLL_MS } from '../../shared/mesh/downlink.ts'
import { isOwnKind } from '../../shared/mesh/link-kinds.ts'
import { HOUR_MS, MINUTE_MS } from '../../shared/time.ts'
import { type Clock, createTimer, systemClock } from '../clock.ts'
import { nameSource, readBounded, type Target } from './delivery.ts'
import { type Ask, createSettingsTeller } from './settings.ts'

/** Longer than a request stays open, and than any other takes. */
const POLL_TIMEOUT_MS = POLL_MS + 15_000
const TIMEOUT_MS = 10_000
/** The time between two requests that brought nothing, however fast the other service answers. */
const CALM_MS = 1000
/** How often the links are looked at while no radio is connected. */
const LINKS_MS = 2000
/** Interval of retries while somebody has to change the configuration first. */
const REFUSED_MS = 5 * MINUTE_MS
/** From what became of a packet to its report: it is stored first. */
const NEWS_MS = 50
/** How often stored states are compared with what was reported, whoever changed them. */
const NEWS_AGAIN_MS = 5000
/** Between two entries of the audit log about refusals. */
const REFUSALS_MS = MINUTE_MS
const MAX_RADIOS = 8
/** Each change restarts a radio, which then neither hears nor sends for a minute. */
const MAX_CHANGES_PER_HOUR = 6
/** Commands of which this process remembers that it began them: more than it may begin while one of them is open. */
const MAX_BEGUN = 2000
/** More than a service may give at once. */
const MAX_COMMANDS = 20

const commandsSchema = z.object({ commands: z.array(z.unknown()).max(MAX_COMMANDS) })
const takenSchema = z.object({ remainingMs: z.number() })

type Needs = Pick<Ports, 'config' | 'store' | 'log' | 'events'> & {
  readonly radio: Radio
  /** Whether this process may use the radios. */
  readonly mayWrite?: () => boolean
  /** Numbers from 0 to below 1. */
  readonly random?: () => number
  /** Milliseconds since an arbitrary moment: setting the clock changes nothing. */
  readonly monotonic?: () => number
}

/** Commands of the service to which this one delivers. */
export type Downlink = { stop(): Promise<void> }

/** Why nothing is sent: the name of an error, and a sentence. */
type Refusal = { readonly error: 'REFUSED' | 'EXPIRED'; readonly notice: string | null }

/**
 * Asks the service to which this one delivers what the radios shall send or change, and does what COLLECTOR_DOWNLINK
 * allows: at most once, and never late. What arrives is believed as far as what a stranger says.
 */
export function startDownlink(needs: Needs, clock: Clock = systemClock): Downlink {
  const { COLLECTOR_TARGET_URL: url, COLLECTOR_TOKEN: token, COLLECTOR_NAME: name } = needs.config
  const { COLLECTOR_DOWNLINK: allowed, COLLECTOR_DOWNLINK_PER_HOUR: mostPerHour } = needs.config
  if (url === null || token === null || allowed.length === 0) return { stop: () => Promise.resolve() }
  const { store, log, radio, events, mayWrite = () => true, random = Math.random } = needs
  const { monotonic = systemClock.monotonic } = needs
  const target: Target = { url, token, name }
  const service = new URL(url).host
  const closing = new AbortController()
  /** Commands that this process began. */
  const begun = new Set<string>()
  /** When it began them: each counts, whether or not a packet came of it. */
  const begunAt: number[] = []
  /** The same of changes of settings, each of which restarts a radio. */
  const changedAt: number[] = []
  const refusals = { told: -Infinity, count: 0 }
  const news = createTimer(clock)
  const expiries = new Set<() => void>()
  let reason: string | null = 'nothing was asked yet'
  let reporting = Promise.resolve()

  const enter = (now: string | null) => {
    if (now === reason) return
    reason = now
    if (now === null) log.info('The collector listens for what its radios shall send', { target: service, allowed })
    else log.warn('The collector cannot ask what its radios shall send', { target: service, reason: now })
  }
  const wait = (ms: number) =>
    new Promise<void>((resolve) => {
      const done = () => {
        cancel()
        closing.signal.removeEventListener('abort', done)
        resolve()
      }
      const cancel = clock.after(ms, done)
      closing.signal.addEventListener('abort', done)
      if (closing.signal.aborted) done()
    })
  /** Null: there was no answer that can be read. */
  const ask: Ask = async (path, body, timeoutMs = TIMEOUT_MS, method = body === null ? 'GET' : 'POST') => {
    try {
      const response = await fetch(`${target.url}/api/ingest${path}`, {
        method,
        redirect: 'manual',
        headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
        ...(body !== null && { body: JSON.stringify(body) }),
        signal: AbortSignal.any([closing.signal, AbortSignal.timeout(timeoutMs)]),
      })
      const text = await readBounded(response)
      const json: unknown = response.status === 200 && text !== null ? JSON.parse(text) : null
      return { status: response.status, json }
    } catch {
      return null
    }
  }

  const report = async (): Promise<void> => {
    const all = await readNews(store, (id) => begun.has(id))
    if (all.length === 0) return
    const answer = await ask('/commands/report', { reports: all.map((each) => each.report) })
    // What the other service does not understand, it does not understand later either.
    const isSettled = answer !== null && [204, 400, 413, 422].includes(answer.status)
    if (isSettled) await noteTold(store, all)
  }
  const settings = allowed.includes('settings') ? createSettingsTeller(ask, monotonic) : null
  const tellSettings = async (): Promise<void> => {
    if (!mayWrite()) return
    const able = new Map(ableLinks(radio).map((link) => [link.name, nameSource(target, link.name)]))
    await settings?.tell(
      radio.devices().flatMap((device) => {
        const source = able.get(device.source)
        return source === undefined ? [] : [{ device, source }]
      }),
    )
  }
  const reportNow = () => {
    reporting = reporting
      // The values first: whoever reads that a change is done reads them next.
      .then(() => (closing.signal.aborted ? undefined : tellSettings()))
      .then(() => (closing.signal.aborted ? undefined : report()))
      .catch((error: unknown) => log.error('What became of commands could not be reported', { error }))
      .finally(() => {
        if (!closing.signal.aborted) news.start(NEWS_AGAIN_MS, reportNow)
      })
  }
  const reportSoon = () => {
    if (!closing.signal.aborted) news.start(NEWS_MS, reportNow)
  }

  const noteRefused = async (command: Pick<Command, 'kind' | 'askedBy'> | null, why: string) => {
    refusals.count += 1
    if (monotonic() - refusals.told < REFUSALS_MS) return
    const { count } = refusals
    Object.assign(refusals, { told: monotonic(), count: 0 })
    const details = { service, reason: why, commands: count, kind: command?.kind, askedBy: command?.askedBy }
    log.warn('A command of the service to which this one delivers was refused', details)
    const ctx = { store, ip: null, requestId: null, viewer: null, now: clock.now }
    await store.atomic([audit(ctx, 'downlink_refused', details)])
  }

  const linkOf = (source: string): LinkInfo | null =>
    ableLinks(radio).find((link) => nameSource(target, link.name) === source) ?? null
  const isOver = (times: number[], most: number) => {
    const now = monotonic()
    while (times[0] !== undefined && times[0] <= now - HOUR_MS) times.shift()
    return times.length >= most
  }
  const isOverBudget = () => isOver(begunAt, mostPerHour)
  /** What to send; a text: why it is refused. */
  const examine = async (command: Command): Promise<Job | string> => {
    const kind = COMMAND_KINDS.find((one) => one === command.kind)
    if (kind === undefined || !allowed.includes(KIND_OF_COMMAND[kind])) return 'the collector does not allow this'
    const content = contentSchemas[kind].safeParse(command.content)
    if (!content.success) return 'the collector does not understand it'
    const link = linkOf(command.radio)
    const nodeNum = link?.radio?.nodeNum ?? null
    if (link === null || nodeNum === null) return 'the radio is not connected to the collector'
    if (await isPacketKnown(store, nodeNum, command.packetId)) return 'the collector knows another packet of this id'
    if (isOverBudget()) return `the collector sends at most ${mostPerHour} an hour for others`
    if (kind === 'settings' && isOver(changedAt, MAX_CHANGES_PER_HOUR)) {
      return `the collector changes settings at most ${MAX_CHANGES_PER_HOUR} times an hour for others`
    }
    return { kind, content: content.data, link, nodeNum }
  }

  /** The moment before which it must be sent, by `monotonic`; null: it must not. */
  const take = async ({ id }: Command, claim: string, deadline: number): Promise<number | null> => {
    for (let failures = 0; ; failures += 1) {
      const startedAt = monotonic()
      if (startedAt >= deadline || closing.signal.aborted) return null
      const answer = await ask('/commands/take', { id, claim }, Math.min(TIMEOUT_MS, deadline - startedAt))
      if (answer?.status === 200) {
        const parsed = takenSchema.safeParse(answer.json)
        const remainingMs = parsed.success ? Math.min(parsed.data.remainingMs, COMMAND_MS) : 0
        return remainingMs > 0 ? Math.min(startedAt + remainingMs, startedAt + COMMAND_MS) : null
      }
      if (answer !== null && answer.status < 500 && answer.status !== 429) return null
      await wait(backOff(failures, { firstMs: 250, mostMs: 5000, jitter: 0.75 + random() / 2 }))
    }
  }

  /** Writes down that a command is begun; false: it was before. */
  const begin = async (command: TakenCommand): Promise<boolean> => {
    if (begun.has(command.id)) return false
    begun.add(command.id)
    for (const id of begun) {
      if (begun.size <= MAX_BEGUN) break
      begun.delete(id)
    }
    const at = monotonic()
    begunAt.push(at)
    if (await writeDown(store, command, clock.now())) return true
    begun.delete(command.id)
    begunAt.splice(begunAt.lastIndexOf(at), 1)
    return false
  }

  /** Returns whether it began a command. */
  const handle = async (raw: unknown, askedAt: number): Promise<boolean> => {
    const parsed = commandSchema.safeParse(raw)
    if (!parsed.success) {
      await noteRefused(null, 'the collector does not understand it')
      return false
    }
    const command = parsed.data
    const deadline = askedAt + Math.min(command.expiresInMs, COMMAND_MS)
    if (monotonic() >= deadline) return false
    const claim = randomUUID().replaceAll('-', '')
    const job = await examine(command)
    if (typeof job === 'string') {
      const refused = { id: command.id, claim, state: 'failed', error: 'REFUSED', notice: job, isAnswered: false }
      await noteRefused(command, job)
      await ask('/commands/report', { reports: [refused] })
      return false
    }
    const { id } = command
    const packetId = job.kind === 'settings' ? 0 : command.packetId
    const taken: TakenCommand = { id, claim, packetId, fromNodeNum: job.nodeNum }
    if (!(await begin(taken))) return false
    if (job.kind === 'settings') changedAt.push(monotonic())
    const sendBefore = await take(command, claim, deadline)
    const refusal = sendBefore === null ? EXPIRED : await send(command, job, sendBefore)
    if (refusal !== null) {
      await noteRefusal(store, id, refusal)
      begun.delete(id)
    }
    reportSoon()
    return true
  }

  const send = async (command: Command, job: Job, sendBefore: number): Promise<Refusal | null> => {
    const isLate = () => monotonic() >= sendBefore || !mayWrite() || closing.signal.aborted
    if (isLate()) return EXPIRED
    const { id, packetId, askedBy } = command
    const given: GivenCommand = { packetId, service, askedBy, isOver: isLate, onDelivery: reportSoon }
    const ctx: SendCtx = {
      store,
      ip: null,
      requestId: null,
      viewer: null,
      now: clock.now,
      radio,
      events,
      command: given,
    }
    try {
      await sendJob(ctx, job, id)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return { error: 'REFUSED', notice: error.message }
    }
    if (job.kind === 'settings') return null
    const cancel = clock.after(Math.max(0, sendBefore - monotonic()), () => {
      expiries.delete(cancel)
      radio.expire?.(packetId)
    })
    expiries.add(cancel)
    return null
  }

  const poll = async (): Promise<number> => {
    const radios = ableLinks(radio).map((link) => nameSource(target, link.name))
    if (radios.length === 0 || !mayWrite()) return LINKS_MS
    const query = new URLSearchParams()
    for (const source of radios.slice(0, MAX_RADIOS)) query.append('radio', source)
    for (const kind of allowed) query.append('kind', kind)
    const askedAt = monotonic()
    const answer = await ask(`/commands?${query.toString()}`, null, POLL_TIMEOUT_MS)
    if (closing.signal.aborted) return 0
    const parsed = commandsSchema.safeParse(answer?.json)
    if (!parsed.success) {
      enter(explain(answer?.status ?? null))
      const isRefused = answer !== null && answer.status < 500 && answer.status !== 429
      if (isRefused) return REFUSED_MS
      const pauseMs = backOff(failures, { firstMs: 1000, mostMs: MINUTE_MS, jitter: 0.75 + random() / 2 })
      failures += 1
      return pauseMs
    }
    failures = 0
    enter(null)
    let hasBegun = false
    for (const raw of parsed.data.commands) hasBegun = (await handle(raw, askedAt)) || hasBegun
    return hasBegun ? 0 : Math.max(0, askedAt + CALM_MS - monotonic())
  }
  let failures = 0
  const run = async () => {
    while (!closing.signal.aborted) {
      const pauseMs = await poll().catch((error: unknown) => {
        log.error('Commands for the radios could not be handled', { error })
        return MINUTE_MS
      })
      if (pauseMs > 0) await wait(pauseMs)
    }
  }
  reportNow()
  const running = run()
  return {
    async stop() {
      closing.abort()
      news.stop()
      for (const cancel of expiries) cancel()
      await running
      await reporting
    },
  }
}

const EXPIRED: Refusal = { error: 'EXPIRED', notice: null }

/** What a command asks for, once it was examined. */
type Job = { readonly kind: CommandKind; readonly content: object; readonly link: LinkInfo; readonly nodeNum: number }

/** Connected radios of this process that can send. */
function ableLinks(radio: Radio): LinkInfo[] {
  return radio
    .links()
    .filter(
      ({ kind, state, reason, txEnabled }) =>
        isOwnKind(kind) && state === 'connected' && reason === null && txEnabled !== false,
    )
}

/** As if somebody here had asked for it. `id`: that of the command. Throws what sending throws. */
async function sendJob(ctx: SendCtx, { kind, content, link: { name: radio } }: Job, id: string): Promise<void> {
  switch (kind) {
    case 'text': {
      const { slot, channel, replyId, hopLimit, ...message } = contentSchemas.text.parse(content)
      const table = await readChannelTable(ctx.store, configuredRadios(ctx.radio))
      // Its owner has changed the channels, and the other service does not know that yet.
      if (channel !== null && table.identityIn(radio, slot) !== channel) {
        throw new AppError('invalid_request', 'The radio has another channel in its place')
      }
      const text = {
        ...message,
        radio,
        channel: table.numberOf(radio, slot),
        ...(replyId !== null && { replyId }),
        ...(hopLimit !== null && { hopLimit }),
      }
      await sendMessage(ctx, text, null)
      return
    }
    case 'traceroute':
      await requestTraceroute(ctx, { ...contentSchemas.traceroute.parse(content), radio })
      return
    case 'request': {
      const { to, request } = contentSchemas.request.parse(content)
      await requestFor(ctx, to, { kind: request, radio })
      return
    }
    case 'settings': {
      const device = ctx.radio?.devices().find(({ source }) => source === radio)
      if (device === undefined) throw new AppError('radio_unavailable', 'This radio is not connected')
      await changeByCommand({ ...ctx, requestId: id }, device, contentSchemas.settings.parse(content))
      return
    }
    default:
      return kind satisfies never
  }
}

function explain(status: number | null): string {
  switch (status) {
    case null:
      return 'the target cannot be reached'
    case 401:
      return 'the target does not know the token (401)'
    case 403:
      return 'the token may not command radios: it needs the scope radio (403)'
    case 404:
    case 405:
      return `the target does not give commands (${status})`
    default:
      return `the target answers, but not as expected (${status})`
  }
}
