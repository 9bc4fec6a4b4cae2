import { useSignal } from '@preact/signals'
import type { InferResponseType } from 'hono/client'
import { api, ask } from '../../api.ts'
import { stamp, zoneName } from '../../format.ts'
import { locale } from '../../language.ts'
import { Actions, Field, Submit } from '../../parts/form/field.tsx'
import { Group } from '../../parts/form/labelled.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { TimeZoneSelect } from '../../parts/form/time-zone-select.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { Card } from '../../parts/page.tsx'
import { useAction, useLoad } from '../../state/load.ts'
import { t } from '../../strings.ts'
import { quietTexts } from '../../strings/people/quiet-hours.ts'

type Kept = InferResponseType<(typeof api.alerts)['quiet-hours']['$get'], 200>

const DAYS = [1, 2, 3, 4, 5, 6, 7] as const
const dayFormat = new Intl.DateTimeFormat(locale, { weekday: 'short', timeZone: 'UTC' })
/** 1 January 2024 was a Monday. */
const dayName = (day: number) => dayFormat.format(Date.UTC(2024, 0, day))

/** When the user wants no messages about alerts. */
export function QuietHours() {
  const { data, error, reload } = useLoad(() => ask(api.alerts['quiet-hours'].$get()), [])
  return (
    <Card title={quietTexts.title} help={quietTexts.help}>
      <Failure error={error.value} retry={reload} />
      {data.value !== null && <Hours kept={data.value} reload={reload} />}
    </Card>
  )
}

function Hours({ kept, reload }: { kept: Kept; reload(): Promise<void> }) {
  const { busy, error, run } = useAction()
  const isOn = useSignal(kept.quietHours !== null)
  const draft = useSignal(
    kept.quietHours ?? { from: '22:00', to: '07:00', timeZone: zoneName(), days: [...DAYS] as number[] },
  )
  const { from, to, timeZone, days } = draft.value
  const set = (changes: Partial<typeof draft.value>) => (draft.value = { ...draft.value, ...changes })
  const keep = async (quietHours: typeof draft.value | null) => {
    await run(async () => {
      await ask(api.alerts['quiet-hours'].$put({ json: { quietHours } }))
      say(t.common.saved)
      await reload()
    })
  }
  const isSame = from === to
  const save = (event: SubmitEvent) => {
    event.preventDefault()
    if (!isSame && days.length > 0) void keep(draft.value)
  }
  return (
    <form class="stack" onSubmit={save}>
      <Switch
        checked={isOn.value}
        disabled={busy.value}
        hint={quietTexts.exceptions}
        onChange={(wanted) => {
          isOn.value = wanted
          if (!wanted && kept.quietHours !== null) void keep(null)
        }}
      >
        {quietTexts.on}
      </Switch>
      {kept.until !== null && isOn.value && <p role="status">{quietTexts.applies(stamp(kept.until))}</p>}
      {isOn.value && (
        <>
          <div class="two">
            <Field
              label={quietTexts.from}
              type="time"
              value={from}
              required
              onInput={(event) => set({ from: event.currentTarget.value })}
            />
            <Field
              label={quietTexts.to}
              type="time"
              value={to}
              required
              error={isSame ? quietTexts.sameTimes : null}
              onInput={(event) => set({ to: event.currentTarget.value })}
            />
          </div>
          <Group
            legend={quietTexts.days}
            hint={quietTexts.daysHint}
            error={days.length === 0 ? quietTexts.noDay : null}
          >
            <div class="choices">
              {DAYS.map((day) => (
                <label class="check" key={day}>
                  <input
                    type="checkbox"
                    checked={days.includes(day)}
                    onChange={(event) => {
                      const others = days.filter((other) => other !== day)
                      set({
                        days: event.currentTarget.checked
                          ? DAYS.filter((one) => one === day || days.includes(one))
                          : others,
                      })
                    }}
                  />{' '}
                  {dayName(day)}
                </label>
              ))}
            </div>
          </Group>
          <TimeZoneSelect
            label={quietTexts.timeZone}
            value={timeZone}
            onChange={(chosen) => set({ timeZone: chosen })}
          />
        </>
      )}
      <Failure error={error.value} />
      {isOn.value && (
        <Actions>
          <Submit busy={busy.value} idle={t.common.save} working={t.common.saving} />
        </Actions>
      )}
    </form>
  )
}
