import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask, send } from '../../api.ts'
import { CopyText } from '../../parts/copy.tsx'
import { askFirst, Dialog } from '../../parts/dialog.tsx'
import { say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { status, type User, user as viewer, userName } from '../../state/session.ts'
import { factorTexts } from '../../strings/people/factors.ts'
import { userTexts } from '../../strings/people/users.ts'

type Listed = InferResponseType<(typeof api.users)[':id']['$get'], 200>['user']

type Step = { name: string; help: string; sure: string; isDangerous: boolean; act(): Promise<void> }

/** A user's role and password, and whether the account is active. */
export function UserAccess({ user, onChanged }: { user: Listed; onChanged(): Promise<void> }) {
  const password = useSignal<string | null>(null)
  const isSelf = user.id === viewer.value?.id
  const param = { id: String(user.id) }
  const name = userName(user)
  const reset: Step = {
    name: userTexts.reset,
    help: userTexts.resetHelp,
    sure: userTexts.resetSure(name),
    isDangerous: true,
    act: async () => {
      password.value = (await ask(api.users[':id']['reset-password'].$post({ param }))).password
    },
  }
  const resetFactors: Step = {
    name: userTexts.resetFactors,
    help: userTexts.resetFactorsHelp(user.secondFactor.map((factor) => factorTexts[factor]).join(', ')),
    sure: userTexts.resetFactorsSure(name),
    isDangerous: true,
    act: async () => {
      await send(api.users[':id']['reset-second-factor'].$post({ param }))
      say(userTexts.factorsReset)
    },
  }
  const canReset = user.authProvider === 'local' && user.isActive && !isSelf && !status.value?.localAuthDisabled
  const steps = isSelf
    ? []
    : [
        ...(canReset ? [reset] : []),
        ...(canReset && user.secondFactor.length > 0 ? [resetFactors] : []),
        ...roleSteps(user, name),
        activeStep(user, name),
      ]
  return (
    <Card title={userTexts.danger}>
      {isSelf && <p class="faint">{userTexts.self}</p>}
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
        <Dialog title={userTexts.resetDone(name)} onClose={() => (password.value = null)}>
          <p class="measure">{userTexts.onceHelp}</p>
          <CopyText text={password.value} label={userTexts.temporary} />
        </Dialog>
      )}
    </Card>
  )
}

function roleSteps(user: User, name: string): Step[] {
  const set = async (isAdmin: boolean) => {
    await ask(api.users[':id'].admin.$put({ param: { id: String(user.id) }, json: { isAdmin } }))
    say(userTexts.roleChanged)
  }
  return user.isAdmin
    ? [
        {
          name: userTexts.dropAdmin,
          help: userTexts.dropAdminHelp,
          sure: userTexts.dropAdminSure(name),
          isDangerous: true,
          act: () => set(false),
        },
      ]
    : [
        {
          name: userTexts.makeAdmin,
          help: userTexts.makeAdminHelp,
          sure: userTexts.makeAdminSure(name),
          isDangerous: false,
          act: () => set(true),
        },
      ]
}

function activeStep(user: User, name: string): Step {
  const param = { id: String(user.id) }
  return user.isActive
    ? {
        name: userTexts.deactivate,
        help: userTexts.deactivateHelp,
        sure: userTexts.deactivateSure(name),
        isDangerous: true,
        act: async () => {
          await send(api.users[':id'].$delete({ param }))
          say(userTexts.deactivated)
        },
      }
    : {
        name: userTexts.reactivate,
        help: userTexts.reactivateHelp,
        sure: userTexts.reactivateHelp,
        isDangerous: false,
        act: async () => {
          await ask(api.users[':id'].$put({ param, json: { isActive: true } }))
          say(userTexts.reactivated)
        },
      }
}
