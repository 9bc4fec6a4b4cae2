import { signal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import type { api } from '../../api.ts'

export type KeyHealth = InferResponseType<typeof api.nodes.keys.$get, 200>[number]

/** The nodes with a doubtful key, by number; null until they are loaded, which only their list does. */
export const keyHealth = signal<ReadonlyMap<number, KeyHealth> | null>(null)

/** `problem`: `any`, or one kind. */
export function hasKeyProblem(nodeNum: number, problem: string): boolean {
  const found = keyHealth.value?.get(nodeNum)
  if (found === undefined) return false
  if (problem === 'shared') return found.sharedWith.length > 0
  if (problem === 'weak') return found.weak
  return problem === 'changed' ? found.changed : true
}
