import * as z from 'zod'
import { sha256Hex } from '../../base/crypto.ts'
import type { Ports } from '../../base/context.ts'
import { SendFailure } from '../../base/outgoing/ports.ts'
import { DAY_MS } from '../../../shared/time.ts'
import { keepState, readState } from './state.ts'
import { isNewer, VERSION } from './version-order.ts'

export const releaseSchema = z.object({
  /** A hash of the address. Another one is asked at once. */
  source: z.string(),
  askedAt: z.number(),
  /** What the address named last; null: nothing yet. */
  version: z.string().max(100).nullable(),
  /** Why the latest answer says nothing; null: it named a version. */
  problem: z.string().max(200).nullable(),
})
export type Release = z.infer<typeof releaseSchema>

/** `tag_name` is what Forgejo, Gitea and GitHub answer for the latest release. */
const answerSchema = z
  .object({ version: z.string().max(100).optional(), tag_name: z.string().max(100).optional() })
  .transform(({ version, tag_name: tag }) => (version ?? tag ?? '').replace(/^v/, ''))
  .pipe(z.string().regex(VERSION))

type Needs = Pick<Ports, 'config' | 'store' | 'outbound' | 'now'>

/** Asks UPDATE_CHECK_URL for the latest version, at most once a day, whatever it answers. Sends nothing about this service. */
export async function checkRelease({ config, store, outbound, now }: Needs): Promise<void> {
  const url = config.UPDATE_CHECK_URL
  if (url === null || outbound === null) return
  const source = sourceOf(url)
  const known = await readState(store, 'release', releaseSchema)
  const isSame = known?.source === source
  const age = now() - (known?.askedAt ?? 0)
  if (isSame && age >= 0 && age < DAY_MS) return
  const asked = { source, askedAt: now(), version: isSame ? known.version : null, problem: 'no answer yet' }
  // Kept first: a process that ends while it asks must not ask again at each start.
  await keepState(store, 'release', asked, now())
  const answer = await ask(outbound, url)
  await keepState(store, 'release', { ...asked, ...answer }, now())
}

async function ask(
  outbound: NonNullable<Ports['outbound']>,
  url: string,
): Promise<{ readonly problem: string } | { readonly version: string; readonly problem: null }> {
  try {
    const { status, text } = await outbound.read(url)
    if (status !== 200) return { problem: `it answered ${status}` }
    const version = answerSchema.safeParse(parseJson(text)).data
    return version === undefined ? { problem: 'its answer names no version' } : { version, problem: null }
  } catch (error) {
    if (error instanceof SendFailure) return { problem: error.message }
    throw error
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** What is known of newer versions; null: UPDATE_CHECK_URL is not set. */
export function describeRelease({ config, version }: Pick<Ports, 'config' | 'version'>, known: Release | null) {
  const url = config.UPDATE_CHECK_URL
  if (url === null) return null
  const found = known?.source === sourceOf(url) ? known : null
  const latest = found?.version ?? null
  return {
    host: new URL(url).host,
    askedAt: found?.askedAt ?? null,
    latest,
    isNewer: latest !== null && isNewer(latest, version),
    problem: found?.problem ?? null,
  }
}

const sourceOf = (url: string): string => sha256Hex(url).slice(0, 16)
