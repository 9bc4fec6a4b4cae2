import type { DescribedSection } from '../app/device-config/described.ts'
import type { Ports } from '../app/base/context.ts'
import type { Store } from '../db/store.ts'

// Replaces `src/app/device-config/described.ts` in the worker (scripts/edge.js): only the service beside a radio decodes
// settings, so the worker has no descriptors of them, and reads what an editor shows from a file of the build.

type Described = ReadonlyMap<string, DescribedSection>

const files = new WeakMap<Store, Fetcher>()
const known = new WeakMap<Store, Described>()

/** Remembers, for each store, where the files of the build are. */
export function keepFiles(store: Store, assets: Fetcher): void {
  files.set(store, assets)
}

export async function readDescribed({ store }: Pick<Ports, 'store'>): Promise<Described> {
  const read = known.get(store) ?? (await readFile(store))
  known.set(store, read)
  return read
}

async function readFile(store: Store): Promise<Described> {
  const answer = await files.get(store)?.fetch('https://files.invalid/api/described-settings.json')
  if (answer?.ok !== true) throw new Error('the file api/described-settings.json of the build is missing')
  // Safe, because the build wrote the file from the same type.
  return new Map(Object.entries(await answer.json<Record<string, DescribedSection>>()))
}
