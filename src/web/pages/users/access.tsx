import { useSignal } from '@preact/signals'
import { api, ask, send } from '../../api.ts'
import { CopyText } from '../../parts/copy.tsx'
import { askFirst, Dialog } from '../../parts/dialog.tsx'
import { say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { status, type User, user as viewer } from '../../state/session.ts'
import { t } from '../../strings.ts'

type Step = { name: string; help: string; sure: string; isDangerous: boolean; act(): Promise<void> }

/** Role, password and whether the account is open at all. */
export function UserAccess({ user, onChanged }: { user: User; onChanged(): Promise<void> }) {
  const password = useSignal<string | null>(null)
  const isSelf = user.id === viewer.value?.id
  const param = { id: String(user.id) }
  const name = user.displayName ?? user.username
  const reset: Step = {
    name: t.users.reset,
    help: t.users.resetHelp,
    sure: t.users.resetSure(name),
    isDangerous: true,
    act: async () => {
      password.value = (await ask(api.users[':id']['reset-password'].$post({ param }))).password
    },
  }
  const resetFactors: Step = {
    name: t.users.resetFactors,
    help: t.users.resetFactorsHelp,
    sure: t.users.resetFactorsSure(name),
    isDangerous: true,
    act: async () => {
      await send(api.users[':id']['reset-second-factor'].$post({ param }))
      say(t.users.factorsReset)
    },
  }
  const canReset = user.authProvider === 'local' && user.isActive && !isSelf && !status.value?.localAuthDisabled
  const steps = isSelf
    ? []
    : [...(canReset ? [reset, resetFactors] : []), ...roleSteps(user, name), activeStep(user, name)]
  return (
    <Card title={t.users.danger}>
      {isSelf && <p class="faint">{t.users.self}</p>}
      <ul class="rows">
        {steps.map((step) => (
          <li key={step.name}>
            <div class="grow faint">{step.help}</div>
            <button
              type="button"
              class={step.isDangerous ? 'button danger-quiet' : 'button'}
              onClick={() =>
                askFirst({
                  text: step.sure,
                  confirm: step.name,
                  isDangerous: step.isDangerous,
                  act: async () => {
                    await step.act()
                    await onChanged()
                  },
                })
              }
            >
              {step.name}
            </button>
          </li>
        ))}
      </ul>
      {password.value !== null && (
        <Dialog title={t.users.resetDone(name)} onClose={() => (password.value = null)}>
          <p class="measure">{t.users.onceHelp}</p>
          <CopyText text={password.value} label={t.users.temporary} />
        </Dialog>
      )}
    </Card>
  )
}

function roleSteps(user: User, name: string): Step[] {
  const set = async (isAdmin: boolean) => {
    await ask(api.users[':id'].admin.$put({ param: { id: String(user.id) }, json: { isAdmin } }))
    say(t.users.roleChanged)
  }
  return user.isAdmin
    ? [
        {
          name: t.users.dropAdmin,
          help: t.users.dropAdminHelp,
          sure: t.users.dropAdminSure(name),
          isDangerous: true,
          act: () => set(false),
        },
      ]
    : [
        {
          name: t.users.makeAdmin,
          help: t.users.makeAdminHelp,
          sure: t.users.makeAdminSure(name),
          isDangerous: false,
          act: () => set(true),
        },
      ]
}

function activeStep(user: User, name: string): Step {
  const param = { id: String(user.id) }
  return user.isActive
    ? {
        name: t.users.deactivate,
        help: t.users.deactivateHelp,
        sure: t.users.deactivateSure(name),
        isDangerous: true,
        act: async () => {
          await send(api.users[':id'].$delete({ param }))
          say(t.users.deactivated)
        },
      }
    : {
        name: t.users.reactivate,
        help: t.users.reactivateHelp,
        sure: t.users.reactivateHelp,
        isDangerous: false,
        act: async () => {
          await ask(api.users[':id'].$put({ param, json: { isActive: true } }))
          say(t.users.reactivated)
        },
      }
}
