import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../api.ts'
import { dateTime } from '../../format.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { Failure } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { status } from '../../state/session.ts'
import { accountTexts } from '../../strings/people/account.ts'

type SignIn = InferResponseType<(typeof api.auth)['sign-ins']['$get'], 200>['signIns'][number]

const PAGE = 10

function loadSignIns(before: number | null) {
  return ask(
    api.auth['sign-ins'].$get({ query: { limit: String(PAGE), ...(before !== null && { before: String(before) }) } }),
  )
}

/** The user's own sign-ins, newest first. */
export function SignIns() {
  const { data, error, reload } = useLoad(() => loadSignIns(null), [])
  const older = useSignal<readonly SignIn[]>([])
  const next = useSignal<number | null | undefined>(undefined)
  const more = useAction()
  const nextBefore = next.value === undefined ? (data.value?.nextBefore ?? null) : next.value
  const showOlder = () =>
    more.run(async () => {
      const page = await loadSignIns(nextBefore)
      older.value = [...older.value, ...page.signIns]
      next.value = page.nextBefore
    })
  return (
    <Card title={accountTexts.signIns} help={accountTexts.signInsHelp}>
      <Failure error={error.value ?? more.error.value} retry={reload} />
      <ul class="rows">
        {[...(data.value?.signIns ?? []), ...older.value].map((signIn) => (
          <li key={signIn.id}>
            <div class="grow">
              {dateTime(signIn.at)} · {methodOf(signIn)}
              <div class="faint">{[signIn.ip, signIn.browser].filter(Boolean).join(' · ')}</div>
            </div>
          </li>
        ))}
      </ul>
      {nextBefore !== null && (
        <button type="button" class="button" disabled={more.busy.value} onClick={() => void showOlder()}>
          {accountTexts.olderSignIns}
        </button>
      )}
    </Card>
  )
}

function methodOf({ method, provider }: SignIn): string {
  const text = accountTexts.methods[method]
  if (provider === null) return text
  const known = status.value?.providers.find(({ id }) => id === provider)
  return `${text} (${known === undefined ? provider : (known.name ?? accountTexts.organisation)})`
}
