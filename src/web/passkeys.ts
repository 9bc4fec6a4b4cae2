import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/browser'
import { api, ApiError, ask, askAs, send } from './api.ts'

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
  const optionsJSON = await signInOptions(how)
  return enterBy(await ceremony(({ startAuthentication }) => startAuthentication({ optionsJSON })))
}

type Made = Parameters<typeof plain<AuthenticationResponseJSON['response']>>[0]

async function enterBy(passkey: Made) {
  try {
    return await ask(api.auth.login.passkey.$post({ json: { response: plain(passkey) } }))
  } catch (error) {
    // In the second step the service uses this error for every factor, but its text is about typed codes.
    if (!(error instanceof ApiError) || error.code !== 'invalid_code') throw error
    throw new ApiError(error.status, 'passkey_refused', error.message, {}, null)
  }
}

let lastOptions: Promise<unknown> = Promise.resolve()

/** One request after the other: each answer replaces the challenge in the browser's cookie. Throws `ApiError`. */
async function signInOptions(how: 'alone' | 'second'): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const query = how === 'alone' ? { alone: 'true' as const } : {}
  const next = lastOptions.catch(() => {}).then(() => askAs<Options>(api.auth.login.passkey.options.$post({ query })))
  lastOptions = next
  return (await next).options
}

/** The service's challenge is valid for 5 min. */
const OFFER_MS = 4 * 60_000

/**
 * Lets the browser list passkeys in the name field, without a dialog (conditional mediation). `onChosen` gets a
 * function that signs in with the chosen one. Returns a function that stops the offer. Does nothing in browsers without
 * this feature.
 */
export function offerPasskeys(onChosen: (signIn: () => Promise<void>) => void): () => void {
  let isOver = false
  let offers = 0
  let at = 0
  let withdraw = () => {}
  const offer = async () => {
    const mine = ++offers
    const isLate = () => isOver || mine !== offers
    at = Date.now()
    const { browserSupportsWebAuthnAutofill, startAuthentication, WebAuthnAbortService } =
      await import('@simplewebauthn/browser')
    if (!(await browserSupportsWebAuthnAutofill()) || isLate()) return
    const optionsJSON = await signInOptions('alone')
    if (isLate()) return
    const waiting = startAuthentication({ optionsJSON, useBrowserAutofill: true })
    withdraw = () => WebAuthnAbortService.cancelCeremony()
    const passkey = await waiting.finally(() => {
      if (mine === offers) withdraw = () => {}
    })
    if (!isLate()) onChosen(async () => void (await enterBy(passkey)))
  }
  // Nobody asked for an offer, so its failure is not shown: the form and the button work without it.
  const renew = () => void offer().catch(() => {})
  const renewIfSeen = () => {
    if (document.visibilityState === 'visible' && Date.now() - at >= OFFER_MS) renew()
  }
  // Another tab may have replaced the challenge.
  const returned = () => {
    if (document.visibilityState === 'visible') renew()
  }
  renew()
  const timer = setInterval(renewIfSeen, 10_000)
  document.addEventListener('visibilitychange', returned)
  return () => {
    isOver = true
    clearInterval(timer)
    document.removeEventListener('visibilitychange', returned)
    withdraw()
  }
}

/** Proves the user's identity again. Throws `ApiError`. */
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
