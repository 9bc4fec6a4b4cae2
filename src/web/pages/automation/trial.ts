import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api, type ApiError, ask } from '../../api.ts'
import { asApiError } from '../../state/load.ts'
import type { Tryable } from './draft.ts'
import type { DryRun, NewRule, Sample } from './rule.ts'

export type Trial = {
  /** The form is complete; otherwise only its times can be shown. */
  readonly isWhole: boolean
  /** The latest result; it stays while the form is incomplete. */
  readonly result: Signal<DryRun | null>
  readonly error: Signal<ApiError | null>
}

/** A pause of this length counts as the end of typing. */
const PAUSE_MS = 350

/** Tries a rule while it is typed. */
export function useTrial(tryable: Tryable | null, sample: Sample | null): Trial {
  const rule = tryable?.rule ?? null
  // A rule needs a name to be saved, but not to be tried.
  const tried = rule?.name === '' ? { ...rule, name: '–' } : rule
  return useDryRun(tried === null ? null : { rule: tried, sample }, tryable?.isWhole ?? false)
}

/** Tries the saved rule, for users who may not change it. */
export function useSavedTrial(id: number, sample: Sample | null): Trial {
  return useDryRun({ id, sample }, true)
}

type Tried = { readonly sample: Sample | null } & ({ readonly rule: NewRule } | { readonly id: number })

function useDryRun(tried: Tried | null, isWhole: boolean): Trial {
  const result = useSignal<DryRun | null>(null)
  const error = useSignal<ApiError | null>(null)
  const turn = useRef(0)
  useEffect(() => {
    const mine = ++turn.current
    if (tried === null) {
      result.value = null
      error.value = null
      return
    }
    const run = async () => {
      try {
        const found = await request(tried)
        if (mine !== turn.current) return
        result.value = found
        error.value = null
      } catch (cause) {
        if (mine === turn.current) error.value = asApiError(cause)
      }
    }
    const timer = setTimeout(() => void run(), result.peek() === null ? 0 : PAUSE_MS)
    return () => clearTimeout(timer)
  }, [JSON.stringify(tried)])
  useEffect(
    () => () => {
      turn.current++
    },
    [],
  )
  return { isWhole, result, error }
}

function request(tried: Tried): Promise<DryRun> {
  const said = tried.sample === null ? {} : { sample: tried.sample }
  if ('rule' in tried) return ask(api.automation['dry-run'].$post({ json: { rule: tried.rule, ...said } }))
  return ask(api.automation[':id']['dry-run'].$post({ param: { id: String(tried.id) }, json: said }))
}
