import { createTimer, type Clock, systemClock } from '../../clock.ts'
import { createFrameDecoder, encodeFrame, MAX_FRAME_PAYLOAD } from '../../../meshtastic/link/framing.ts'
import { RADIO_PROBLEMS } from '../../../shared/mesh/radio-problems.ts'
import type { Connect } from '../connection.ts'
import { normalizeFingerprint } from './certificate.ts'
import { ask, BadAnswer } from './http-request.ts'
import { explainNetworkError, type Explanation } from './network-errors.ts'
import { ChangedCertificate, createPinnedAgent } from './pinned-agent.ts'
import { LINK_REASONS } from '../../../shared/mesh/link-reasons.ts'

/** How long to wait after the radio had nothing to say. Each request costs a small radio much work. */
const POLL_MS = 1000
/** Messages that wait to be sent. */
const MAX_WAITING = 64

export type HttpTarget = {
  /** `http://host` or `https://host`, with a port if it has another one. */
  readonly url: string
  /** SHA-256 of the certificate as hexadecimal digits; null: the first one is accepted, and from then on only that. */
  readonly fingerprint: string | null
  /** Called with the fingerprint of the first certificate, to be stored. */
  onFingerprint?(fingerprint: string): void
  readonly clock?: Clock
  readonly pollMs?: number
}

/**
 * Opens the stream of a radio that has a web server (ESP32). Its messages come and go one by one, without frames; here
 * they have them as on all other ways. Another client of the same web server takes messages away.
 */
export function connectHttp({
  url,
  fingerprint,
  onFingerprint,
  clock = systemClock,
  pollMs = POLL_MS,
}: HttpTarget): Connect {
  let pinned = fingerprint === null ? null : normalizeFingerprint(fingerprint)
  const { protocol, origin } = new URL(url)
  return (events) => {
    const agent = createPinnedAgent(protocol === 'https:', (found) => {
      if (pinned === null) {
        pinned = found
        onFingerprint?.(found)
      }
      return found === pinned
    })
    const decoder = createFrameDecoder((payload) => payload)
    const pause = createTimer(clock)
    const waiting: Uint8Array[] = []
    let isOver = false
    let isOpen = false
    let isBusy = false

    const stop = () => {
      isOver = true
      pause.stop()
      waiting.length = 0
      agent.destroy()
    }
    const end = (...told: Explanation) => {
      if (isOver) return
      stop()
      events.onClose(...told)
    }
    /** One request after the other, what is to be sent first. */
    const proceed = async () => {
      if (!isOpen) {
        await ask(agent, { url: `${origin}/api/v1/toradio`, method: 'OPTIONS' })
        if (isOver) return
        isOpen = true
        events.onOpen()
      }
      for (;;) {
        if (isOver) return
        const body = waiting.shift()
        if (body !== undefined) {
          await ask(agent, { url: `${origin}/api/v1/toradio`, method: 'PUT', body })
          continue
        }
        const said = await ask(agent, { url: `${origin}/api/v1/fromradio?all=false`, method: 'GET' })
        if (isOver) return
        if (said.length === 0 && waiting.length === 0) return pause.start(pollMs, run)
        if (said.length > MAX_FRAME_PAYLOAD) throw new BadAnswer('too long')
        if (said.length > 0) events.onData(encodeFrame(said))
      }
    }
    const run = () => {
      if (isBusy || isOver) return
      pause.stop()
      isBusy = true
      proceed().then(
        () => {
          isBusy = false
          if (waiting.length > 0) run()
          return undefined
        },
        (error: unknown) => end(...explain(error, isOpen)),
      )
    }
    // Events never come during the call.
    pause.start(0, run)
    return {
      write(bytes) {
        if (isOver) return
        for (const { message } of decoder.push(bytes, clock.now())) {
          if (waiting.length >= MAX_WAITING) return end(LINK_REASONS.takes_nothing)
          waiting.push(message)
        }
        if (isOpen && waiting.length > 0) run()
      },
      destroy: stop,
    }
  }
}

function explain(error: unknown, isOpen: boolean): Explanation {
  if (error instanceof ChangedCertificate) return [RADIO_PROBLEMS.certificate_changed, 'certificate_changed']
  if (error instanceof BadAnswer) {
    return isOpen
      ? [`the radio's web server gives an answer of another kind (${error.message})`]
      : [RADIO_PROBLEMS.not_a_radio, 'not_a_radio']
  }
  if (!(error instanceof Error)) return ['the connection failed']
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (/^(?:ERR_SSL|EPROTO)/.test(code)) return [RADIO_PROBLEMS.no_tls, 'no_tls']
  if (code.startsWith('HPE_')) return [RADIO_PROBLEMS.not_a_radio, 'not_a_radio']
  return explainNetworkError(error)
}
