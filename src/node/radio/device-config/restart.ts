import type { LinkInfo } from '../../../app/mesh/radios/radio.ts'
import { encodeAdminPacket, encodeRestart } from '../../../meshtastic/link/admin-packets.ts'
import type { RadioConfig } from '../../../meshtastic/config/sections.ts'
import type { RadioEvent } from '../../../meshtastic/radio-event.ts'
import { readAnswer } from './admin-answer.ts'
import { createTimer, type Clock } from '../../clock.ts'
import type { Link } from '../link.ts'

/**
 * A radio that was told to restart disconnects within seconds. If it has not done so after this time, its settings are
 * read without a restart.
 */
export const HANG_UP_MS = 60_000

/** What an exchange with a connected radio needs. */
export type ExchangeNeeds = {
  readonly link: Pick<Link, 'expectRestart' | 'readAgain'>
  /**
   * Sends an encoded ToRadio. Returns false and sends nothing unless the link is connected and `config` is its latest
   * report.
   */
  readonly send: (message: Uint8Array, config: RadioConfig) => boolean
  readonly clock: Clock
  readonly nextId: () => number
}

/** An exchange with a radio that outlives its connection. */
export type Exchange = {
  start(): void
  /** Processes the radio's events. */
  observe(event: RadioEvent): void
  /** The state of the link changed. */
  onState(state: LinkInfo['state']): void
  /** The radio reported all its settings again. */
  onRead(config: RadioConfig): void
  stop(): void
}

type RestartOptions = ExchangeNeeds & {
  /** The radio's latest report on this connection. */
  readonly config: RadioConfig
  /** Called once, as the last event. */
  onEnd(read: RadioConfig, hasRestarted: boolean): void
}

/**
 * Makes a connected radio restart and report its settings again. Only a restart ends an edit that was begun: the
 * firmware changes its memory with each step, including other sections, saves only at the commit, and has no command to
 * abandon an edit. The settings reported afterwards are the saved ones.
 */
export function createRestart({ config, link, send, clock, nextId, onEnd }: RestartOptions): Exchange {
  const packetId = nextId()
  const patience = createTimer(clock)
  const at = { isOver: false, isAnswered: false, isReading: false, wasLost: false }
  // If the link is lost just now, the settings are read again after the reconnection anyway.
  const readAgain = () => {
    patience.stop()
    at.isReading = true
    link.readAgain()
  }
  const stop = () => {
    at.isOver = true
    patience.stop()
  }
  return {
    start() {
      link.expectRestart()
      send(encodeAdminPacket(config.nodeNum, packetId, encodeRestart()), config)
      patience.start(HANG_UP_MS, readAgain)
    },
    observe(event) {
      if (at.isOver || at.isReading) return
      const answer = readAnswer(event, config.nodeNum, packetId)
      if (answer === 'NONE') at.isAnswered = true
      else if (answer !== null) readAgain()
    },
    onState(state) {
      if (at.isOver || state === 'connected') return
      at.wasLost ||= !at.isReading
      patience.stop()
    },
    onRead(read) {
      if (at.isOver) return
      stop()
      onEnd(read, read.rebootCount > config.rebootCount || (at.isAnswered && at.wasLost))
    },
    stop,
  }
}
