import type { RadioProblem } from '../../../shared/mesh/radio-problems.ts'
import { LINK_REASONS } from '../../../shared/mesh/link-reasons.ts'

/** Why a stream ended, for people, and which known problem that is. */
export type Explanation = readonly [reason: string, problem?: RadioProblem]

const EXPLANATIONS: ReadonlyMap<string, Explanation> = new Map<string, Explanation>([
  ['ECONNREFUSED', [LINK_REASONS.refused, 'refused']],
  ['ECONNRESET', [LINK_REASONS.reset]],
  ['EPIPE', [LINK_REASONS.closed]],
  ['ETIMEDOUT', [LINK_REASONS.unanswered, 'unreachable']],
  ['EHOSTUNREACH', [LINK_REASONS.unreached, 'unreachable']],
  ['EHOSTDOWN', [LINK_REASONS.unreached, 'unreachable']],
  ['ENETUNREACH', [LINK_REASONS.no_network, 'unreachable']],
  ['EADDRNOTAVAIL', [LINK_REASONS.unreached, 'unreachable']],
  ['ENOTFOUND', [LINK_REASONS.unknown_host, 'unknown_name']],
  ['EAI_AGAIN', [LINK_REASONS.no_lookup, 'unknown_name']],
])

/** The explanation of an error of a socket. */
export function explainNetworkError(error: Error): Explanation {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null
  return code === null ? [error.message] : (EXPLANATIONS.get(code) ?? [code])
}
