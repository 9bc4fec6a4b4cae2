import { catalog } from '../../../language.ts'
import { Segments } from '../../../parts/form/field.tsx'
import { Group } from '../../../parts/form/labelled.tsx'
import { Card } from '../../../parts/page.tsx'
import { duration } from '../../../format.ts'
import { a } from '../../../strings/automation.ts'
import { TOKEN_NAMES } from '../../../../shared/automation/tokens.ts'
import { ChannelChecks, CronField, type Form, Line, TemplateField, tidy } from '../fields.tsx'
import { type KindView, type RuleOf, STAND_IN } from './kind.ts'

type Draft = {
  readonly timing: 'interval' | 'cron'
  readonly hours: string
  readonly cron: string
  readonly channels: readonly number[]
  readonly text: string
}

export const announceKind = catalog('announceKind', {
  name: 'Announce',
  help: 'Sends a text to channels repeatedly, at least three hours apart.',
})

export const announce: KindView<RuleOf<'announce'>, Draft> = {
  ...announceKind,
  tokens: TOKEN_NAMES,
  empty: { timing: 'interval', hours: '24', cron: '0 8 * * *', channels: [0], text: '' },
  draftOf({ when, channels, text }) {
    const times = when.kind === 'cron' ? { cron: when.cron } : { hours: String(when.hours) }
    return { timing: when.kind, ...times, channels, text }
  },
  ruleOf({ timing, cron, hours, channels, text }, common) {
    const when =
      timing === 'cron'
        ? ({ kind: 'cron', cron: tidy(cron) } as const)
        : ({ kind: 'interval', hours: Number(hours) } as const)
    return { kind: 'announce', ...common, when, channels: [...channels], text }
  },
  isWhole: ({ text, channels }) => text.trim() !== '' && channels.length > 0,
  standIn: { text: STAND_IN, channels: [0] },
  Fields,
  summary: ({ when, channels }, { name }) => [
    when.kind === 'cron' ? when.cron : a.every(duration(when.hours * 3600)),
    ...channels.map(name),
  ],
  facts: ({ text }) => [[a.text, text]],
}

function Fields({ form }: { form: Form<Draft> }) {
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
            value={draft.cron}
            help={a.cronAnnounce}
            onInput={(cron) => set({ cron })}
          />
        )}
      </Card>
      <Card title={a.says}>
        <TemplateField form={form} path="text" value={draft.text} onInput={(text) => set({ text })} />
        <Group legend={a.channels} error={errorAt('channels') && a.channelNeeded}>
          <ChannelChecks channels={form.channels} value={draft.channels} onChange={(channels) => set({ channels })} />
        </Group>
      </Card>
    </>
  )
}
