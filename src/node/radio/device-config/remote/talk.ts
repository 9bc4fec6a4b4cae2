import type { RemoteStep } from '../../../../app/device-config/remote/port.ts'
import type { ConfigPart } from '../../../../meshtastic/config/sections.ts'
import { encodeMetadataAsk, listAsks, type RemoteAnswer, withPasskey } from '../../../../meshtastic/remote/asks.ts'
import type { RemoteOutcome, RemoteReason } from '../../../../shared/mesh/remote-states.ts'
import type { AskResult } from './asker.ts'

/** What the steps of an action need. */
export type Needs = {
  ask(asked: { readonly payload: Uint8Array; readonly wantResponse: boolean; attempts?: number }): Promise<AskResult>
  /** False: the service stops. */
  wait(ms: number): Promise<boolean>
  now(): number
  report(state: RemoteStep['state']): void
  onFirmware(version: string): void
}

/** Ends an action with its outcome. */
export class Ended extends Error {
  override name = 'Ended'
  readonly outcome: RemoteStep

  constructor(
    state: RemoteOutcome,
    reason: RemoteReason | null,
    { detail = null, differing = [] }: Partial<Pick<RemoteStep, 'detail' | 'differing'>> = {},
  ) {
    super(reason ?? state)
    this.outcome = { state, reason, detail, differing }
  }
}

/** The service stops: the action has no outcome. */
export class Stopped extends Error {
  override name = 'Stopped'
}

const BY_NODE: Readonly<Record<string, RemoteReason>> = {
  ADMIN_PUBLIC_KEY_UNAUTHORIZED: 'not_admin',
  NOT_AUTHORIZED: 'not_authorized',
  ADMIN_BAD_SESSION_KEY: 'bad_session',
  NO_RESPONSE: 'no_response',
  PKI_UNKNOWN_PUBKEY: 'unknown_key',
  NO_CHANNEL: 'unknown_key',
}

const BY_RADIO: Readonly<Record<string, RemoteReason>> = {
  PKI_FAILED: 'cannot_encrypt',
  PKI_SEND_FAIL_PUBLIC_KEY: 'cannot_encrypt',
  DUTY_CYCLE_LIMIT: 'duty_cycle',
}

/** What it means that a message was not answered as it should be. Throws `Stopped`. */
export function explain(result: Exclude<AskResult, { kind: 'answer' }>): Ended {
  switch (result.kind) {
    case 'stopped':
      throw new Stopped()
    case 'unsent':
      return new Ended('failed', 'radio_unavailable', { detail: result.reason })
    case 'refused': {
      const { error: detail, byNode } = result
      return byNode
        ? new Ended('refused', BY_NODE[detail] ?? 'node_error', { detail })
        : new Ended('failed', BY_RADIO[detail] ?? 'radio_error', { detail })
    }
    case 'silent':
    case 'delivered':
      return new Ended('timed_out', 'silent')
    default:
      return result satisfies never
  }
}

/** Asks for data. Throws `Ended`. */
export async function demand(needs: Needs, payload: Uint8Array, attempts?: number): Promise<RemoteAnswer> {
  const asked = { payload, wantResponse: true }
  const result = await needs.ask(attempts === undefined ? asked : { ...asked, attempts })
  if (result.kind !== 'answer') throw explain(result)
  return result.answer
}

/** Orders something. */
export async function order(needs: Needs, payload: Uint8Array, passkey: Uint8Array, attempts?: number) {
  const asked = { payload: withPasskey(payload, passkey), wantResponse: false }
  const result = await needs.ask(attempts === undefined ? asked : { ...asked, attempts })
  if (result.kind === 'stopped') throw new Stopped()
  return result
}

/** The firmware's version, and the session's passkey. Throws `Ended`. */
export async function readFirmware(needs: Needs): Promise<{ readonly version: string; readonly passkey: Uint8Array }> {
  const { firmwareVersion, passkey } = await demand(needs, encodeMetadataAsk())
  const version = firmwareVersion ?? ''
  needs.onFirmware(version)
  return { version, passkey }
}

export type Reading = {
  readonly parts: readonly ConfigPart[]
  readonly passkey: Uint8Array
  readonly hadPrivateKey: boolean
}

/** Reads a section, or its parts with these prefixes. Throws `Ended`. */
export async function readParts(
  needs: Needs,
  section: string,
  prefixes: readonly string[] | null,
  attempts?: number,
): Promise<Reading> {
  const parts: ConfigPart[] = []
  let passkey: Uint8Array = new Uint8Array(0)
  let hadPrivateKey = false
  for (const { prefix, payload } of listAsks(section, prefixes)) {
    const answer = await demand(needs, payload, attempts)
    const { part } = answer
    if (part === null || part.section !== section || part.prefix !== prefix) {
      throw new Ended('refused', 'unknown_section')
    }
    parts.push({ prefix, schema: part.schema, message: part.message })
    passkey = answer.passkey
    hadPrivateKey ||= answer.hadPrivateKey
  }
  return { parts, passkey, hadPrivateKey }
}

export function isSameKey(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}
