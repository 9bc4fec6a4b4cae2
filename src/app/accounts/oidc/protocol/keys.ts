import { compactVerify } from 'jose/jws/compact/verify'
import * as z from 'zod'
import type { Allowance } from './allowance.ts'
import type { Claims } from './claims.ts'
import { OidcFailure } from '../failure.ts'
import type { AskProvider } from '../../../base/ask-within.ts'
import { fromBase64url } from '../../../base/crypto.ts'
import { MINUTE_MS } from '../../../../shared/time.ts'

const LIFETIME_MS = 10 * MINUTE_MS
const TIMEOUT_MS = 8000
const MAX_KEYS = 100

/**
 * The signature algorithms that are accepted, regardless of the header and the discovery document, and the hashes
 * allowed for `at_hash`. RFC 7518, 8037, 9864. OpenID Connect Core names no hash for EdDSA: most providers use that of
 * Ed25519, others SHA-256.
 */
const ALGORITHMS = {
  RS256: { kty: 'RSA', crv: null, hashes: ['SHA-256'] },
  RS384: { kty: 'RSA', crv: null, hashes: ['SHA-384'] },
  RS512: { kty: 'RSA', crv: null, hashes: ['SHA-512'] },
  PS256: { kty: 'RSA', crv: null, hashes: ['SHA-256'] },
  PS384: { kty: 'RSA', crv: null, hashes: ['SHA-384'] },
  PS512: { kty: 'RSA', crv: null, hashes: ['SHA-512'] },
  ES256: { kty: 'EC', crv: 'P-256', hashes: ['SHA-256'] },
  ES384: { kty: 'EC', crv: 'P-384', hashes: ['SHA-384'] },
  ES512: { kty: 'EC', crv: 'P-521', hashes: ['SHA-512'] },
  EdDSA: { kty: 'OKP', crv: 'Ed25519', hashes: ['SHA-512', 'SHA-256'] },
  Ed25519: { kty: 'OKP', crv: 'Ed25519', hashes: ['SHA-512', 'SHA-256'] },
} as const
type AlgorithmName = keyof typeof ALGORITHMS
type Algorithm = (typeof ALGORITHMS)[AlgorithmName]

function isAlgorithm(alg: unknown): alg is AlgorithmName {
  return typeof alg === 'string' && Object.hasOwn(ALGORITHMS, alg)
}

const about = {
  kid: z.string().optional(),
  use: z.literal('sig').optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify'))
    .optional(),
  alg: z.string().optional(),
}
const text = z.string().max(4096)

// Only public members are passed to Web Crypto.
const keySchema = z.discriminatedUnion('kty', [
  z.object({ ...about, kty: z.literal('RSA'), n: text, e: text }),
  z.object({ ...about, kty: z.literal('EC'), crv: z.string(), x: text, y: text }),
  z.object({ ...about, kty: z.literal('OKP'), crv: z.string(), x: text }),
])
type Key = z.infer<typeof keySchema>

const keySetSchema = z.object({ keys: z.array(z.unknown()).max(MAX_KEYS) })

export type Verified = { readonly claims: Claims; readonly hashes: Algorithm['hashes'] }

/** Limits for unsuccessful fetches of keys: for an unknown or missing key ID, and for one that seems to be reused. */
type Refetches = { readonly unknown: Allowance; readonly reused: Allowance }

/**
 * Checks the signatures of ID tokens with the keys of a `jwks_uri`, cached for ten minutes. A token that no cached key
 * verifies causes a new fetch, as far as `refetches` allows: providers rotate keys at any time, and a newly installed
 * provider may reuse a key ID.
 */
export function createKeys(refetches: Refetches, now: () => number) {
  let known: { uri: string; keys: readonly Key[]; at: number } | null = null

  const fetched = async (ask: AskProvider, uri: string): Promise<readonly Key[]> => {
    const keys = await fetchKeys(ask, uri)
    known = { uri, keys, at: now() }
    return keys
  }

  /** The claims of a token with a valid signature. Throws an `OidcFailure`. */
  return async (ask: AskProvider, uri: string, token: string, type = 'JWT'): Promise<Verified> => {
    const header = readHeader(token, type)
    const { hashes } = ALGORITHMS[header.alg]
    const cached = known !== null && known.uri === uri && Math.abs(now() - known.at) < LIFETIME_MS ? known.keys : null
    const keys = cached ?? (await fetched(ask, uri))
    const suitable = suitableKeys(keys, header)
    const claims = await verifyWith(suitable, token, header)
    if (claims !== null) return { claims, hashes }
    const isKnown = header.kid !== undefined && keys.some(({ kid }) => kid === header.kid)
    const allowance = isKnown ? refetches.reused : refetches.unknown
    // If the key ID is known but of another kind, the token is wrong.
    const mayBeNew = cached !== null && (!isKnown || suitable.length > 0)
    const renewed = mayBeNew && allowance.take() ? await fetched(ask, uri) : keys
    const candidates = suitableKeys(renewed, header)
    if (candidates.length === 0) throw new OidcFailure('key_unknown', { alg: header.alg })
    const second = renewed === keys ? null : await verifyWith(candidates, token, header)
    if (second === null) throw new OidcFailure('id_token_signature', { alg: header.alg })
    // The provider really had changed its keys.
    allowance.giveBack()
    return { claims: second, hashes }
  }
}

/** How many keys at a `jwks_uri` could verify an ID token. Throws an `OidcFailure`. */
export async function countKeys(ask: AskProvider, uri: string): Promise<number> {
  const keys = await fetchKeys(ask, uri)
  const names = Object.keys(ALGORITHMS).filter(isAlgorithm)
  const isUsable = (key: Key) => names.some((alg) => suitableKeys([key], { alg, kid: key.kid }).length > 0)
  return keys.filter(isUsable).length
}

async function fetchKeys(ask: AskProvider, uri: string): Promise<readonly Key[]> {
  const answer = await ask(uri, { headers: { accept: 'application/json' } }, TIMEOUT_MS)
  if (answer.kind === 'none') throw new OidcFailure('keys_unreachable', { why: answer.why })
  if (answer.status !== 200) throw new OidcFailure('keys_refused', { status: answer.status })
  const parsed = keySetSchema.safeParse(answer.json)
  if (!parsed.success) throw new OidcFailure('keys_invalid')
  // The document may contain keys of other types and for other purposes.
  return parsed.data.keys.flatMap((key) => keySchema.safeParse(key).data ?? [])
}

type Header = { readonly alg: AlgorithmName; readonly kid: string | undefined }

const headerSchema = z.looseObject({ alg: z.unknown(), kid: z.string().max(1024).optional() })

/** `type` is accepted besides JWT, in capitals. */
function readHeader(token: string, type: string): Header {
  const parts = token.split('.')
  const parsed = parts.length === 3 ? headerSchema.safeParse(decodeJson(parts[0] ?? '')) : null
  if (!parsed?.success) throw new OidcFailure('id_token_malformed')
  const { alg, kid, typ, crit } = parsed.data
  if (!isAlgorithm(alg)) throw new OidcFailure('id_token_alg')
  if (typ !== undefined && !(typeof typ === 'string' && ['JWT', type].includes(typ.toUpperCase()))) {
    throw new OidcFailure('id_token_typ')
  }
  if (crit !== undefined) throw new OidcFailure('id_token_crit')
  return { alg, kid }
}

/** The keys with the token's kid, or without a kid the only key of its kind. */
function suitableKeys(keys: readonly Key[], { alg, kid }: Header): readonly Key[] {
  const { kty, crv } = ALGORITHMS[alg]
  const ofKind = keys.filter(
    (key) => key.kty === kty && (key.kty === 'RSA' || key.crv === crv) && (key.alg === undefined || key.alg === alg),
  )
  if (kid !== undefined) return ofKind.filter((key) => key.kid === kid)
  return ofKind.length === 1 ? ofKind : []
}

async function verifyWith(keys: readonly Key[], token: string, { alg }: Header): Promise<Claims | null> {
  for (const key of keys) {
    const verified = await compactVerify(token, publicMembers(key), { algorithms: [alg] }).catch(() => null)
    if (verified === null) continue
    const claims = z.record(z.string(), z.unknown()).safeParse(parseJson(verified.payload))
    if (!claims.success) throw new OidcFailure('id_token_malformed')
    return claims.data
  }
  return null
}

function publicMembers(key: Key) {
  switch (key.kty) {
    case 'RSA':
      return { kty: key.kty, n: key.n, e: key.e }
    case 'EC':
      return { kty: key.kty, crv: key.crv, x: key.x, y: key.y }
    case 'OKP':
      return { kty: key.kty, crv: key.crv, x: key.x }
    default:
      return key satisfies never
  }
}

/** The JSON of a part of a token; undefined for anything else. */
export function decodeJson(encoded: string): unknown {
  try {
    return parseJson(fromBase64url(encoded))
  } catch {
    return undefined
  }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}
