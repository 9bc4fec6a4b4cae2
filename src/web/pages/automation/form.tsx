import { Segments } from '../../parts/form/field.tsx'
import { Group, Labelled } from '../../parts/form/labelled.tsx'
import { Card } from '../../parts/page.tsx'
import { Switch } from '../../parts/form/switch.tsx'
import { a } from '../../strings/automation.ts'
import { AnswerFields } from './answer.tsx'
import { timeZones } from './draft.ts'
import { ChannelChecks, CronField, type Form, Line, NodeList, NodeSelect, TemplateField } from './fields.tsx'

/** What a rule is made of, as far as its kind asks for it. */
export function RuleFields({ form, air }: { form: Form; air: string | null }) {
  const { draft, set } = form
  return (
    <>
      <Card title={a.rule}>
        <Line
          form={form}
          label={a.name}
          hint={a.nameHint}
          path="name"
          value={draft.name}
          maxLength={64}
          onInput={(name) => set({ name })}
        />
        <Switch
          checked={draft.enabled}
          hint={air === null ? undefined : a.enabledHelp(air)}
          onChange={(enabled) => set({ enabled })}
        >
          {a.enabled}
        </Switch>
      </Card>
      <KindFields form={form} />
      <Times form={form} />
    </>
  )
}

function KindFields({ form }: { form: Form }) {
  switch (form.draft.kind) {
    case 'announce':
      return <AnnounceFields form={form} />
    case 'acknowledge':
      return <AnswerFields form={form} />
    case 'traceroute':
      return <RouteFields form={form} />
    case 'schedule':
      return <CalendarFields form={form} />
    default:
      return form.draft.kind satisfies never
  }
}

function AnnounceFields({ form }: { form: Form }) {
  const { draft, set, errorAt } = form
  return (
    <>
      <Card title={a.when}>
        <Segments
          label={a.when}
          value={draft.timing}
          options={[
            ['interval', a.timing.interval],
            ['cron', a.timing.cron],
          ]}
          onChange={(timing) => set({ timing })}
        />
        {draft.timing === 'interval' ? (
          <Line
            form={form}
            label={a.hours}
            hint={a.hoursHint}
            error={a.hoursHint}
            path="when.hours"
            type="number"
            value={draft.hours}
            onInput={(hours) => set({ hours })}
          />
        ) : (
          <CronField
            form={form}
            path="when.cron"
            value={draft.announceCron}
            help={a.cronAnnounce}
            onInput={(announceCron) => set({ announceCron })}
          />
        )}
      </Card>
      <Card title={a.says}>
        <TemplateField
          form={form}
          path="text"
          value={draft.announceText}
          onInput={(announceText) => set({ announceText })}
        />
        <Group legend={a.channels} error={errorAt('channels') && a.channelNeeded}>
          <ChannelChecks channels={form.channels} value={draft.channels} onChange={(channels) => set({ channels })} />
        </Group>
      </Card>
    </>
  )
}

function RouteFields({ form }: { form: Form }) {
  const { draft, set } = form
  return (
    <>
      <Card title={a.when}>
        <Line
          form={form}
          label={a.everyMinutes}
          hint={a.everyMinutesHint}
          error={a.everyMinutesHint}
          path="everyMinutes"
          type="number"
          value={draft.everyMinutes}
          onInput={(everyMinutes) => set({ everyMinutes })}
        />
      </Card>
      <Card title={a.targets}>
        <Segments
          label={a.targets}
          value={draft.targets}
          options={[
            ['oldest', a.targetKinds.oldest],
            ['list', a.targetKinds.list],
          ]}
          onChange={(targets) => set({ targets })}
        />
        {draft.targets === 'oldest' ? (
          <Line
            form={form}
            label={a.activeWithin}
            hint={a.activeWithinHint}
            error={a.activeWithinHint}
            path="targets.activeWithinHours"
            type="number"
            value={draft.activeWithinHours}
            onInput={(activeWithinHours) => set({ activeWithinHours })}
          />
        ) : (
          <NodeList form={form} />
        )}
      </Card>
    </>
  )
}

function CalendarFields({ form }: { form: Form }) {
  const { draft, set } = form
  return (
    <>
      <Card title={a.when}>
        <CronField
          form={form}
          path="cron"
          value={draft.scheduleCron}
          help={a.cronSchedule}
          onInput={(scheduleCron) => set({ scheduleCron })}
        />
      </Card>
      <ActionCard form={form} />
    </>
  )
}

function ActionCard({ form }: { form: Form }) {
  const { draft, set, errorAt } = form
  const isText = draft.action === 'text'
  return (
    <Card title={a.action}>
      <Segments
        label={a.action}
        value={draft.action}
        options={[
          ['text', a.actions.text],
          ['traceroute', a.actions.traceroute],
        ]}
        onChange={(action) => set({ action })}
      />
      {isText && (
        <TemplateField
          form={form}
          path="action.text"
          value={draft.actionText}
          onInput={(actionText) => set({ actionText })}
        />
      )}
      <div class="two">
        <NodeSelect
          label={a.to}
          value={draft.to}
          none={isText ? a.everybody : a.chooseNode}
          error={errorAt('action.to') && a.toNeeded}
          onChange={(to) => set({ to })}
        />
        {isText && <ChannelSelect form={form} />}
      </div>
    </Card>
  )
}

function ChannelSelect({ form: { draft, set, channels } }: { form: Form }) {
  const offered = [...new Set([0, ...channels.used, draft.channel])].toSorted((x, y) => x - y)
  return (
    <Labelled label={a.onChannel}>
      {(aria) => (
        <select
          {...aria}
          value={String(draft.channel)}
          onChange={(event) => set({ channel: Number(event.currentTarget.value) })}
        >
          {offered.map((index) => (
            <option key={index} value={String(index)}>
              {channels.name(index)}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  )
}

function Times({ form }: { form: Form }) {
  const { draft, set, errorAt } = form
  const error = errorAt('quietHours')
  const time = (label: string, value: string, onInput: (value: string) => void) => (
    <Labelled label={label}>
      {(aria) => <input {...aria} type="time" value={value} onInput={(event) => onInput(event.currentTarget.value)} />}
    </Labelled>
  )
  return (
    <Card title={a.quiet} help={a.quietHelp}>
      <Switch checked={draft.isQuiet} error={error && a.quietMissing} onChange={(isQuiet) => set({ isQuiet })}>
        {a.quietOn}
      </Switch>
      {draft.isQuiet && (
        <div class="two">
          {time(a.quietFrom, draft.quietFrom, (quietFrom) => set({ quietFrom }))}
          {time(a.quietTo, draft.quietTo, (quietTo) => set({ quietTo }))}
        </div>
      )}
      <Labelled label={a.timeZone} hint={a.timeZoneHint} error={errorAt('timeZone')}>
        {(aria) => (
          <select {...aria} value={draft.timeZone} onChange={(event) => set({ timeZone: event.currentTarget.value })}>
            {timeZones(draft.timeZone).map((zone) => (
              <option key={zone} value={zone}>
                {zone.replaceAll('_', ' ')}
              </option>
            ))}
          </select>
        )}
      </Labelled>
    </Card>
  )
}
