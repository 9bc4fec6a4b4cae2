import type { InferResponseType } from 'hono/client'
import { api, send } from '../api.ts'
import { At } from '../parts/age.tsx'
import { askFirst } from '../parts/dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { href } from '../router.ts'
import { auditDamageTexts } from '../strings/system/audit-damage.ts'

type Damage = InferResponseType<typeof api.audit.damage.$get, 200>['damages'][number]

/** What was found, what it may mean, and what to do about it. */
export function Advice({ damages, reload }: { damages: readonly Damage[]; reload(): Promise<void> }) {
  const confirm = () =>
    askFirst({
      text: auditDamageTexts.confirmSure,
      confirm: auditDamageTexts.confirm,
      isDangerous: true,
      act: async () => {
        // The newest; it stands for all before it.
        const [first] = damages
        if (first !== undefined) await send(api.audit.damage.confirm.$post({ json: { id: first.id } }))
        await reload()
      },
    })
  return (
    <section class="notice notice-bad audit-damage" aria-labelledby="audit-damage-title">
      <Icon name="warning" />
      <div class="stack">
        <h2 id="audit-damage-title">{auditDamageTexts.title}</h2>
        <ul>
          {damages.map(({ id, timestamp, damage }) => (
            <li key={id}>
              {auditDamageTexts.found} <strong>{damage}</strong>,{' '}
              <span class="faint">
                <At at={timestamp} />
              </span>
            </li>
          ))}
        </ul>
        <p>{auditDamageTexts.help}</p>
        <ol>
          {auditDamageTexts.steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
        <div class="row-actions">
          <a class="button primary" href={href('/audit')}>
            {auditDamageTexts.open}
          </a>
          <button type="button" class="button" onClick={confirm}>
            {auditDamageTexts.confirm}
          </button>
        </div>
      </div>
    </section>
  )
}
