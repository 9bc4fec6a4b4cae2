import { signal } from '@preact/signals'
import { ApiError } from '../api.ts'

/** A proof that somebody is asked for: `end` says whether they gave it. */
type Wanted = { readonly ways: readonly string[]; end(isGiven: boolean): void }

/** The proof for which the dialog of the page asks; null: none. */
export const wantedProof = signal<Wanted | null>(null)

/** Does `work`, and once more after a proof, where the service asks for one. */
export async function withProof<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'reauthentication_required') throw error
    if (!(await askForProof(error.ways))) throw error
    return work()
  }
}

async function askForProof(ways: readonly string[]): Promise<boolean> {
  // Of two at once the second one waits for the same answer.
  const before = wantedProof.peek()
  return new Promise((resolve) => {
    wantedProof.value = {
      ways,
      end: (isGiven) => {
        wantedProof.value = null
        before?.end(isGiven)
        resolve(isGiven)
      },
    }
  })
}
