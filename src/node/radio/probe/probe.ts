import { createFrameDecoder, encodeFrame, WAKE_BYTES } from '../../../meshtastic/link/framing.ts'
import { isFirmwareTooOld } from '../../../meshtastic/link/firmware.ts'
import { decodeFromRadio } from '../../../meshtastic/link/from-radio.ts'
import { createLockdown } from '../../../meshtastic/link/lockdown.ts'
import { createOtherProtocols, OTHER_QUESTIONS } from '../../../meshtastic/link/other-protocols.ts'
import { encodeWantConfig } from '../../../meshtastic/link/to-radio.ts'
import { type RadioEvent, toRadioEvent } from '../../../meshtastic/radio-event.ts'
import { RADIO_PROBLEMS, type RadioProblem } from '../../../shared/mesh/radio-problems.ts'
import { createTimer, type Clock } from '../../clock.ts'
import type { Connect } from '../connection.ts'

/** A radio answers within a second. One at the other end of a slow line, or asleep, may need some. */
const LIMIT_MS = 20_000
/** The radio may have been asleep, or still starting. */
const ASK_AGAIN_MS = 5000
/** Firmware answers it without the other nodes: PhoneAPI.h, SPECIAL_NONCE_ONLY_CONFIG. */
const SETTINGS_ONLY = 69420

export type ProbedRadio = {
  readonly nodeNum: number
  readonly longName: string | null
  readonly shortName: string | null
  readonly firmwareVersion: string
  /** Null: unknown to the radio itself. */
  readonly hwModel: string | null
  /** E.g. `EU_868`; `UNSET`: it does not transmit yet; null: it did not say. */
  readonly region: string | null
}

/** `reason`: the problem with its remedy, in one sentence. */
export type Probe =
  | { readonly ok: true; readonly radio: ProbedRadio }
  | { readonly ok: false; readonly problem: RadioProblem; readonly reason: string }

/**
 * Opens a stream once, and asks the radio who it is. Ends within 20 s, and always closes the stream. A radio on TCP
 * drops its other client for it.
 */
export function probe(connect: Connect, { clock }: { readonly clock: Clock }): Promise<Probe> {
  return new Promise((resolve) => {
    const decoder = createFrameDecoder(decodeFromRadio)
    const others = createOtherProtocols()
    const lockdown = createLockdown()
    const limit = createTimer(clock)
    const again = createTimer(clock)
    const found = createFindings()
    let isOpen = false
    let isOver = false
    let hasHeard = false

    const finish = (result: Probe) => {
      if (isOver) return
      isOver = true
      limit.stop()
      again.stop()
      connection.destroy()
      resolve(result)
    }
    const fail = (problem: RadioProblem, reason: string = RADIO_PROBLEMS[problem]) =>
      finish({ ok: false, problem, reason })
    const ask = () => {
      connection.write(WAKE_BYTES)
      connection.write(encodeFrame(encodeWantConfig(SETTINGS_ONLY)))
    }
    const connection = connect({
      onOpen() {
        isOpen = true
        connection.write(OTHER_QUESTIONS)
        ask()
        again.start(ASK_AGAIN_MS, ask)
      },
      onData(bytes) {
        if (isOver) return
        const frames = decoder.push(bytes, clock.now())
        if (frames.length === 0) return hasHeard ? undefined : others.take(bytes)
        hasHeard = true
        again.stop()
        for (const { message } of frames) {
          lockdown.take(message)
          if (lockdown.isLocked()) return fail('locked')
          const verdict = found.take(toRadioEvent(message, clock.now(), false))
          if (verdict === 'old_firmware') return fail(verdict)
          if (verdict !== null) return finish({ ok: true, radio: verdict })
        }
      },
      onClose(reason, problem) {
        if (problem !== undefined) return fail(problem)
        if (!isOpen) return fail('unreachable', reason)
        // Whoever closes it in the middle gives it to another client.
        fail(hasHeard ? 'busy' : (others.verdict() ?? 'busy'))
      },
    })
    limit.start(LIMIT_MS, () => {
      if (!isOpen) return fail('unreachable')
      fail(hasHeard ? 'unfinished' : (others.verdict() ?? 'no_answer'))
    })
  })
}

type Findings = {
  /** The radio once everything is known, `old_firmware`, or null: more is to come. */
  take(event: RadioEvent): ProbedRadio | 'old_firmware' | null
}

function createFindings(): Findings {
  let nodeNum: number | null = null
  let names: Pick<ProbedRadio, 'longName' | 'shortName'> | null = null
  let metadata: Pick<ProbedRadio, 'firmwareVersion' | 'hwModel'> | null = null
  let region: string | null = null
  return {
    take(event) {
      if (event.type === 'my-info') nodeNum = event.nodeNum
      if (event.type === 'node-info' && event.node.nodeNum === nodeNum && event.node.user !== null) {
        const { longName, shortName } = event.node.user
        names = { longName, shortName }
      }
      if (event.type === 'metadata') {
        const { firmwareVersion, hwModel } = event.metadata
        if (firmwareVersion !== null && isFirmwareTooOld(firmwareVersion)) return 'old_firmware'
        metadata = firmwareVersion === null ? null : { firmwareVersion, hwModel }
      }
      if (event.type === 'settings' && event.settings.section === 'lora') {
        const { region: said } = event.settings.values
        region = typeof said === 'string' ? said : null
      }
      const isComplete = event.type === 'config-complete'
      if (nodeNum === null || (!isComplete && (names === null || metadata === null || region === null))) return null
      // Firmware before 2.3 may not send any.
      if (metadata === null) return 'old_firmware'
      return { nodeNum, ...(names ?? { longName: null, shortName: null }), ...metadata, region }
    },
  }
}
