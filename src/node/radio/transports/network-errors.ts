import type { RadioProblem } from '../../../shared/mesh/radio-problems.ts'

/** Why a stream ended, for people, and which known problem that is. */
export type Explanation = readonly [reason: string, problem?: RadioProblem]

const EXPLANATIONS: ReadonlyMap<string, Explanation> = new Map<string, Explanation>([
  ['ECONNREFUSED', ['the radio refuses connections', 'refused']],
  ['ECONNRESET', ['the radio reset the connection']],
  ['EPIPE', ['the radio closed the connection']],
  ['ETIMEDOUT', ['the radio does not answer', 'unreachable']],
  ['EHOSTUNREACH', ['the radio cannot be reached', 'unreachable']],
  ['EHOSTDOWN', ['the radio cannot be reached', 'unreachable']],
  ['ENETUNREACH', ['the network cannot be reached', 'unreachable']],
  ['EADDRNOTAVAIL', ['the radio cannot be reached', 'unreachable']],
  ['ENOTFOUND', ["the radio's host name is not known", 'unknown_name']],
  ['EAI_AGAIN', ["the radio's host name cannot be looked up", 'unknown_name']],
])

/** The explanation of an error of a socket. */
export function explainNetworkError(error: Error): Explanation {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null
  return code === null ? [error.message] : (EXPLANATIONS.get(code) ?? [code])
}
