import { useSignal } from '@preact/signals'
import { isSimulated } from '../../../shared/mesh/link-kinds.ts'
import { api, ask, ownName } from '../../api.ts'
import { useLoad } from '../../state/load.ts'
import { CONNECT_PATH } from '../../parts/connect-help.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Card } from '../../parts/page.tsx'
import { href } from '../../router.ts'
import { has, status } from '../../state/session.ts'
import { t } from '../../strings.ts'

const KEY = ownName('checklist-hidden')

function wasHidden(): boolean {
  try {
    return localStorage.getItem(KEY) === 'true'
  } catch {
    // Storage is blocked: the list appears again on the next visit.
    return false
  }
}

type Step = { readonly name: string; readonly isDone: boolean; readonly path?: string; readonly help?: string }

/** The first tasks of a new service, shown until all are done or somebody hides the list. */
export function Checklist() {
  const isHidden = useSignal(wasHidden())
  const { data } = useLoad(async () => {
    const [links, others, isScheduled] = await Promise.all([
      // The edge has no radios, and backups only with a bucket: what it has not is left out.
      has('radio') ? ask(api.info.$get()).then(({ links }) => links) : null,
      ask(api.users.$get({ query: { limit: '1' } })).then((found) => found.total - 1),
      has('backups') ? ask(api.system.backup.settings.$get()).then(({ enabled }) => enabled) : null,
    ])
    return { links, others, isScheduled }
  }, [])
  const found = data.value
  if (found === null || isHidden.value) return null
  const needed: Step[] = [
    { name: t.dashboard.steps.password, isDone: true },
    ...(found.links === null
      ? []
      : [
          {
            name: t.dashboard.steps.radio,
            isDone: found.links.some(({ kind }) => !isSimulated(kind)),
            path: CONNECT_PATH,
          },
        ]),
    ...(found.isScheduled === null
      ? []
      : [{ name: t.dashboard.steps.backup, isDone: found.isScheduled, path: '/backups' }]),
    // Without local accounts, users cannot be created here: they appear when they first sign in.
    ...(status.value?.localAuthDisabled
      ? []
      : [{ name: t.dashboard.steps.user, isDone: found.others > 0, path: '/users/new' }]),
  ]
  if (needed.every(({ isDone }) => isDone)) return null
  const oidc: Step = {
    name: t.dashboard.steps.oidc,
    isDone: status.value?.oidcEnabled ?? false,
    help: t.dashboard.steps.oidcHelp,
  }
  const hide = () => {
    isHidden.value = true
    try {
      localStorage.setItem(KEY, 'true')
    } catch {
      // Storage is blocked: hidden until the page is reloaded.
    }
  }
  return (
    <Card
      title={t.dashboard.checklist}
      actions={
        <button type="button" class="button small" onClick={hide}>
          {t.dashboard.checklistDone}
        </button>
      }
    >
      <ol class="checklist">
        {[...needed, oidc].map((step) => (
          <li key={step.name} class={step.isDone ? 'done' : ''}>
            <span class="tick" aria-hidden="true">
              {step.isDone && <Icon name="check" />}
            </span>
            <div>
              {step.path !== undefined && !step.isDone ? <a href={href(step.path)}>{step.name}</a> : step.name}
              <span class="sr-only"> ({step.isDone ? t.dashboard.steps.done : t.dashboard.steps.open})</span>
              {step.help !== undefined && !step.isDone && <div class="faint">{step.help}</div>}
            </div>
          </li>
        ))}
      </ol>
    </Card>
  )
}
