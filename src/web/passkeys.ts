import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/browser'
import { api, ApiError, ask, askAs, send } from './api.ts'

/** Whether this browser supports passkeys, and the service allows them. */
export function canUsePasskeys(isPossible: boolean): boolean {
  return isPossible && typeof PublicKeyCredential === 'function'
}

/** Creates a passkey on this device and stores it. Returns recovery codes, if there are new ones. Throws `ApiError`. */
export async function createPasskey(name: string): Promise<readonly string[] | null> {
  const { options: optionsJSON } = await askAs<{ options: PublicKeyCredentialCreationOptionsJSON }>(
    api.auth.factors.passkeys.options.$post(),
  )
  const made = await ceremony(({ startRegistration }) => startRegistration({ optionsJSON }))
  const { recoveryCodes } = await ask(api.auth.factors.passkeys.$post({ json: { name, response: plain(made) } }))
  return recoveryCodes
}

type Options = { options: PublicKeyCredentialRequestOptionsJSON }

/** Signs in with a passkey, instead of a password or after it. Throws `ApiError`. */
export async function signInByPasskey(how: 'alone' | 'second') {
  const query = how === 'alone' ? { alone: 'true' as const } : {}
  const { options: optionsJSON } = await askAs<Options>(api.auth.login.passkey.options.$post({ query }))
  const response = await ceremony(({ startAuthentication }) => startAuthentication({ optionsJSON }))
  try {
    return await ask(api.auth.login.passkey.$post({ json: { response: plain(response) } }))
  } catch (error) {
    // In the second step the service says so of every factor, but its text is about typed codes.
    if (!(error instanceof ApiError) || error.code !== 'invalid_code') throw error
    throw new ApiError(error.status, 'passkey_refused', error.message, {}, null)
  }
}

/** Proves again who the user is. Throws `ApiError`. */
export async function proveByPasskey(): Promise<void> {
  const { options: optionsJSON } = await askAs<Options>(api.auth.reauthenticate.options.$post())
  const passkey = await ceremony(({ startAuthentication }) => startAuthentication({ optionsJSON }))
  await send(api.auth.reauthenticate.$post({ json: { passkey: plain(passkey) } }))
}

/** The part of a browser's answer that the service accepts. */
function plain<R extends object>(answer: { id: string; rawId: string; type: 'public-key'; response: R }) {
  const { id, rawId, type, response } = answer
  return { id, rawId, type, response: { ...response } }
}

type Library = typeof import('@simplewebauthn/browser')

/**
 * Loads the library when it is needed. If the browser's dialog is closed, the action is cancelled; its other errors are
 * not shown.
 */
async function ceremony<T>(run: (library: Library) => Promise<T>): Promise<T> {
  const library = await import('@simplewebauthn/browser')
  try {
    return await run(library)
  } catch (error) {
    throw new ApiError(0, 'passkey_cancelled', String(error), {}, null)
  }
}
