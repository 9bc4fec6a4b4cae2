import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask, send } from '../api.ts'
import { useAction } from '../state/load.ts'
import { restoredAccessTexts } from '../strings/system/restored-access.ts'
import { At } from '../parts/age.tsx'
import { askFirst } from '../parts/dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { Failure, say } from '../parts/notice.tsx'

type List = InferResponseType<(typeof api.system.restore)['restored-access']['$get']>
type RestoredAccess = List['restoredAccess'][number]

/** The subject of a change: the user, the node, or public access. */
function nameOf({ action, username, hiddenNode }: RestoredAccess): string {
  if (action === 'unknown') return restoredAccessTexts.replaced
  return (
    username ??
    (hiddenNode === null ? restoredAccessTexts.publicAccess : `!${hiddenNode.toString(16).padStart(8, '0')}`)
  )
}

/** Reapplies the changes of each user, or leaves the users as restored. */
export function Decision(props: {
  backup: string
  restoredAccess: readonly RestoredAccess[]
  reload(): Promise<void>
}) {
  const { backup, restoredAccess, reload } = props
  const chosen = useSignal<ReadonlySet<number>>(new Set())
  const refused = useSignal<readonly string[]>([])
  const action = useAction()
  const ids = restoredAccess.map(({ id }) => id).filter((id) => chosen.value.has(id))
  const again = () =>
    action.run(async () => {
      const answer = await ask(api.system.restore.reapply.$post({ json: { ids } }))
      refused.value = answer.refused.map(({ id, detail }) => {
        const found = restoredAccess.find((one) => one.id === id)
        return restoredAccessTexts.refused(found === undefined ? String(id) : nameOf(found), detail)
      })
      chosen.value = new Set()
      await reload()
      if (answer.reapplied.length > 0) say(restoredAccessTexts.done)
    })
  const leave = () =>
    askFirst({
      text: restoredAccessTexts.leaveSure,
      confirm: restoredAccessTexts.leave,
      isDangerous: true,
      act: async () => {
        await send(api.system.restore['restored-access'].$delete())
        await reload()
      },
    })
  const toggle = (id: number, isOn: boolean) => {
    const next = new Set(chosen.value)
    if (isOn) next.add(id)
    else next.delete(id)
    chosen.value = next
  }
  return (
    <section class="notice notice-bad restored-access" aria-labelledby="restored-access-title">
      <Icon name="warning" />
      <div class="stack">
        <h2 id="restored-access-title">{restoredAccessTexts.title(backup)}</h2>
        <p>{restoredAccessTexts.help}</p>
        <ul>
          {restoredAccess.length > 1 && (
            <li>
              <label class="check">
                <input
                  type="checkbox"
                  checked={ids.length === restoredAccess.length}
                  onChange={(event) =>
                    (chosen.value = new Set(event.currentTarget.checked ? restoredAccess.map(({ id }) => id) : []))
                  }
                />
                {restoredAccessTexts.all}
              </label>
            </li>
          )}
          {restoredAccess.map((one) => (
            <li key={one.id}>
              <label class="check">
                <input
                  type="checkbox"
                  checked={chosen.value.has(one.id)}
                  onChange={(event) => toggle(one.id, event.currentTarget.checked)}
                />
                <span>
                  <strong>{nameOf(one)}</strong> {restoredAccessTexts.what(one.action, one.token?.name ?? one.what)},{' '}
                  <span class="faint">
                    {one.by !== null && restoredAccessTexts.by(one.by)} {one.at !== null && <At at={one.at} />}
                  </span>
                </span>
              </label>
            </li>
          ))}
        </ul>
        <Failure error={action.error.value} />
        {refused.value.map((line) => (
          <p class="bad" role="alert" key={line}>
            {line}
          </p>
        ))}
        <div class="row-actions">
          <button
            type="button"
            class="button primary"
            disabled={ids.length === 0 || action.busy.value}
            onClick={() => void again()}
          >
            {restoredAccessTexts.again}
          </button>
          <button type="button" class="button" onClick={leave}>
            {restoredAccessTexts.leave}
          </button>
        </div>
      </div>
    </section>
  )
}
