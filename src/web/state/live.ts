import { computed, effect, signal } from '@preact/signals'
import { backOff } from '../../shared/back-off.ts'
import { EVENT_KIND_NAMES, EVENT_KINDS, type EventKind } from '../../shared/mesh/event-kinds.ts'
import { ApiError, BASE, isEmbedded, isRecord, noteHeard, readProblem, reconnects, seeingAs } from '../api.ts'
import { can, has, isLeaving, isAnonymous, refreshStatus, status } from './session.ts'

/**
 * - `off`: the visitor may see nothing, or the page is hidden
 * - `connecting`: opening for the first time
 * - `live`: events arrive at once
 * - `cut`: was open, and is being reopened
 * - `polling`: there is no stream here; pages poll
 */
export type LiveState = 'off' | 'connecting' | 'live' | 'cut' | 'polling'
export const liveState = signal<LiveState>('off')

/** Something that has just happened; null: anything may have happened. */
export type LiveEvent = { readonly kind: EventKind; readonly data: Readonly<Record<string, unknown>> } | null

/** How many parts of the page show when and how nodes are heard, and what they measure. */
const heardUsers = signal(0)
/** How long the stream stays as it is after the last of them has gone: the next page may have one, too. */
const LINGER_MS = 1000

/** Asks for the events that a node was heard until the returned function is called. Others tell when it has changed. */
export function needHeard(): () => void {
  heardUsers.value = heardUsers.peek() + 1
  return () => void setTimeout(() => (heardUsers.value = heardUsers.peek() - 1), LINGER_MS)
}

/** How many parts of the page show packets as they are heard. */
const packetUsers = signal(0)

/** Asks for who heard the packets of each node event until the returned function is called. */
export function needPackets(): () => void {
  packetUsers.value = packetUsers.peek() + 1
  return () => void setTimeout(() => (packetUsers.value = packetUsers.peek() - 1), LINGER_MS)
}

const wantsPackets = computed(() => packetUsers.value > 0 && !isAnonymous.value && can('info', 'read'))
/** Whether the open stream has them. */
let hasPackets = false

/** The stream reports each heard node. People without an account always get all of their events. */
const wantsHeard = computed(() => isAnonymous.value || heardUsers.value > 0)
/** Whether the open stream does so. */
export const isHearing = signal(false)

/** Whether all events of these kinds that the page needs reach it immediately. */
export function isLive(kinds: readonly EventKind[]): boolean {
  const isWhole = isHearing.value || !wantsHeard.value || !kinds.includes('node')
  return kinds.length > 0 && liveState.value === 'live' && isWhole && kinds.every(mayHear)
}

function mayHear(kind: EventKind): boolean {
  const needs = EVENT_KINDS[kind]
  return needs === 'own' || can(needs, 'read')
}

const listeners = new Set<(event: LiveEvent) => void>()

/** Calls `listener` at each event of these kinds until the returned function is called. */
export function watchLive(kinds: readonly EventKind[], listener: (event: LiveEvent) => void): () => void {
  const heard = (event: LiveEvent) => {
    if (event === null || kinds.includes(event.kind)) listener(event)
  }
  listeners.add(heard)
  return () => listeners.delete(heard)
}

function tell(event: LiveEvent): void {
  for (const listener of listeners) listener(event)
}

/** A connection that is silent for longer is dead, because the service sends a keep-alive every 15 s. */
const SILENCE_MS = 40_000
const PAUSES = { firstMs: 1000, mostMs: 30_000 }
/** Failures in a row after which pages no longer wait for the stream. */
const PATIENCE = 3

/**
 * Keeps one stream of events open while the tab is visible, for a user or for an anonymous visitor who may see
 * something. A hidden tab closes its connection and resumes where it was. Uses `fetch`, because an EventSource hides
 * statuses and keep-alives, and cannot resume after it gave up. Runs until the returned function is called. Decision:
 * docs/decisions/short-decisions.md#the-pages-read-events-by-fetch-not-by-eventsource
 */
export function keepLive(): () => void {
  const isVisible = signal(document.visibilityState === 'visible')
  const look = () => {
    isVisible.value = document.visibilityState === 'visible'
  }
  document.addEventListener('visibilitychange', look)
  const reader = computed(() => {
    const known = status.value
    // The events depend on who is signed in.
    if (seeingAs !== null || isLeaving.value) return null
    if (isAnonymous.value) return ANONYMOUS
    return known?.user === null || known?.mustChangePassword ? null : (known?.user.id ?? null)
  })
  const stopReading = effect(() => {
    if (reader.value === null || !isVisible.value) return
    if (!has('events')) {
      liveState.value = 'polling'
      return () => (liveState.value = 'off')
    }
    const stream = createStream(reader.value)
    void stream.keepOpen()
    const stopFollowing = wantsHeard.subscribe((wants) => {
      if (wants !== isHearing.peek()) stream.renew()
    })
    const stopFollowingPackets = wantsPackets.subscribe((wants) => {
      if (wants !== hasPackets) stream.renew()
    })
    return () => {
      stopFollowing()
      stopFollowingPackets()
      stream.stop()
    }
  })
  return () => {
    stopReading()
    document.removeEventListener('visibilitychange', look)
  }
}

/** The id of no user. */
const ANONYMOUS = 0

/** The position of the stream when it ended, and its user. */
let resumeAt = { userId: ANONYMOUS, id: '' }

function createStream(userId: number) {
  if (resumeAt.userId !== userId) resumeAt = { userId, id: '' }
  const run = { isStopped: false }
  let controller = new AbortController()
  let isRenewed = false
  let endPause = () => {}
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  const stopWatching = reconnects.subscribe(() => endPause())
  return {
    async keepOpen() {
      let failures = 0
      while (!run.isStopped) {
        controller = new AbortController()
        if (failures === 0 && !isRenewed) liveState.value = resumeAt.id === '' ? 'connecting' : 'cut'
        isRenewed = false
        const known = reconnects.peek()
        isHearing.value = wantsHeard.peek()
        hasPackets = wantsPackets.peek()
        const ending = await readStream(controller)
        if (run.isStopped) return
        if (isRenewed) continue
        failures = ending.wasOpen ? 0 : failures + 1
        liveState.value = ending.refusal !== null || failures >= PATIENCE ? 'polling' : 'cut'
        // Shows whether the service is down, the session has ended, or only the stream was cut.
        await refreshStatus()
        const wait = backOff(failures, { ...PAUSES, jitter: 0.5 + Math.random() / 2 })
        const least = (ending.refusal?.retryAfter ?? 0) * 1000
        // An outage that ended during this attempt needs no further pause.
        const isBack = ending.refusal === null && reconnects.peek() !== known
        if (!run.isStopped && !isBack) await pause(Math.max(least, wait))
      }
    },
    /** Connects again, where the stream is now, because the page needs other events. */
    renew() {
      isRenewed = true
      controller.abort()
    },
    stop() {
      run.isStopped = true
      stopWatching()
      controller.abort()
      endPause()
      liveState.value = 'off'
    },
  }
}

type Ending = { readonly wasOpen: boolean; readonly refusal: ApiError | null }

async function readStream(controller: AbortController): Promise<Ending> {
  let wasOpen = false
  let silence = setTimeout(() => controller.abort(), SILENCE_MS)
  try {
    const headers: Record<string, string> = resumeAt.id === '' ? {} : { 'Last-Event-ID': resumeAt.id }
    const credentials = isEmbedded ? 'omit' : 'same-origin'
    const query = `brief=true${isHearing.peek() ? '' : '&heard=false'}${hasPackets ? '&packets=true' : ''}`
    const response = await fetch(`${BASE}api/events?${query}`, { headers, credentials, signal: controller.signal })
    if (!response.ok || response.body === null) return { wasOpen, refusal: await refusalOf(response) }
    const parse = createParser()
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return { wasOpen, refusal: null }
      clearTimeout(silence)
      silence = setTimeout(() => controller.abort(), SILENCE_MS)
      if (!wasOpen) {
        wasOpen = true
        liveState.value = 'live'
        // Catches events between the first answers and now.
        if (resumeAt.id === '') tell(null)
      }
      noteHeard()
      parse(value)
    }
  } catch {
    // Interrupted, unreachable, silent or stopped: the caller knows which, and reconnects.
    return { wasOpen, refusal: null }
  } finally {
    clearTimeout(silence)
  }
}

/** A proxy's answer while the service is down does not count as a refusal. */
async function refusalOf(response: Response): Promise<ApiError | null> {
  const error = await readProblem(response)
  return error.status === 429 ? error : null
}

/** Server-sent events (html.spec.whatwg.org, 9.2.6) as the service writes them: one line of data, LF. */
function createParser(): (chunk: string) => void {
  let rest = ''
  return (chunk) => {
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => {
          const colon = line.indexOf(': ')
          return [line.slice(0, colon), line.slice(colon + 2)] as const
        }),
      )
      resumeAt = { ...resumeAt, id: fields.get('id') ?? resumeAt.id }
      hear(fields.get('event') ?? '', fields.get('data') ?? '')
    }
  }
}

function hear(name: string, data: string): void {
  if (name === 'reset') tell(null)
  if (name === 'access') void refreshStatus()
  const kind = EVENT_KIND_NAMES.find((known) => known === name)
  if (kind === undefined) return
  const body: unknown = JSON.parse(data)
  if (isRecord(body)) tell({ kind, data: body })
}

/** Runs `work` on request: immediately, then at most every `gapMs`, and never twice at the same time. */
export function pace(work: () => Promise<void>, gapMs: number): { ask(): void; stop(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isBusy = false
  let isAsked = false
  const run = async () => {
    isBusy = true
    isAsked = false
    await work()
    timer = setTimeout(() => {
      isBusy = false
      if (isAsked) void run()
    }, gapMs)
  }
  return {
    ask() {
      isAsked = true
      if (!isBusy) void run()
    },
    stop() {
      clearTimeout(timer)
      isAsked = false
    },
  }
}
