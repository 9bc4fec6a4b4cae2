import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { MAX_SEARCH } from '../../../shared/limits.ts'
import { api, ApiError, askAs } from '../../api.ts'
import type { Message, MessagePage } from '../mesh/nodes.ts'

/** A search begins with so many letters, after this pause in typing. */
const MIN_LETTERS = 3
const PAUSE_MS = 300
/** Some of them may be reactions. */
const LOADED = 12

/** Given to a search whose answer nobody waits for any more. */
const STOPPED = new ApiError(0, 'stopped', '', {}, null)

export type FoundTexts = {
  /** The latest first. */
  readonly texts: readonly Message[]
  /** The answer is on its way. */
  readonly isBusy: boolean
}

/** The texts that contain `wanted`, among those that the user may read. Null: no search. */
export function useFoundTexts(wanted: string | null): FoundTexts {
  const found = useSignal<{ readonly wanted: string; readonly texts: readonly Message[] } | null>(null)
  const asked = wanted === null || [...wanted].length < MIN_LETTERS ? null : wanted.slice(0, MAX_SEARCH)
  useEffect(() => {
    if (asked === null) return
    const stopping = new AbortController()
    const look = async () => {
      const texts = await ask(asked, stopping.signal)
      if (!stopping.signal.aborted) found.value = { wanted: asked, texts }
    }
    const timer = setTimeout(() => void look(), PAUSE_MS)
    return () => {
      clearTimeout(timer)
      stopping.abort(STOPPED)
    }
  }, [asked])
  if (asked === null) return { texts: [], isBusy: false }
  const last = found.value
  if (last?.wanted === asked) return { texts: last.texts, isBusy: false }
  // While typing goes on, those that still fit stay.
  const isLonger = last !== null && asked.startsWith(last.wanted)
  const contains = ({ text }: Message) => text.toLowerCase().includes(asked.toLowerCase())
  return { texts: isLonger ? last.texts.filter(contains) : [], isBusy: true }
}

async function ask(q: string, signal: AbortSignal): Promise<readonly Message[]> {
  try {
    const asked = api.messages.$get({ query: { q, limit: String(LOADED) } }, { init: { signal } })
    const { messages } = await askAs<MessagePage>(asked)
    return messages.filter(({ emoji }) => !emoji)
  } catch {
    // The search goes on without texts: the page itself says that the service is unreachable.
    return []
  }
}
