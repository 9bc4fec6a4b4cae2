import { signal } from '@preact/signals'
import { ApiError } from '../api.ts'

/** A requested proof: `end` says whether the user gave it. */
type Wanted = { readonly ways: readonly string[]; end(isGiven: boolean): void }

/** The proof that the dialog of the page asks for; null: none. */
export const wantedProof = signal<Wanted | null>(null)

/** Runs `work`, and repeats it after a proof if the service asks for one. */
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
  // Of two simultaneous requests, the second one waits for the same answer.
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
