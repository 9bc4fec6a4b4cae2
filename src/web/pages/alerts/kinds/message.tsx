import { catalog } from '../../../language.ts'
import { anyOf } from '../../../format.ts'
import { api, ask } from '../../../api.ts'
import { Select } from '../../../parts/form/field.tsx'
import { Group } from '../../../parts/form/labelled.tsx'
import { Switch } from '../../../parts/form/switch.tsx'
import { Failure } from '../../../parts/notice.tsx'
import { useLoad } from '../../../state/load.ts'
import { alertTexts } from '../../../strings/alerts.ts'
import { t } from '../../../strings.ts'
import type { RuleOf } from '../rule.ts'
import { idOf, NodeList, shownName } from './fields.tsx'
import type { FieldsProps, KindView } from './kind.ts'
import { WordList } from './word-list.tsx'

type Rule = RuleOf<'message'>

export const messageKind = catalog('messageKind', {
  name: 'A message',
  sentence: (sender: string, words: string, where: string) => `Tell me when ${sender} says ${words} ${where}`,
  somebody: 'somebody',
  anything: 'anything',
  anyChannel: 'on any channel',
  onChannel: (channels: string) => `on channel ${channels}`,
  direct: 'in a direct message to one of my radios',
})

export const message: KindView<Rule> = {
  name: messageKind.name,
  isEvent: true,
  fresh: (common) => ({ kind: 'message', ...common, direct: true, channels: 'all' }),
  sentence: (rule) =>
    messageKind.sentence(sender(rule), anyOf(rule.match?.words ?? [messageKind.anything]), where(rule)),
  Fields,
}

function sender({ from }: Rule): string {
  return from == null || from.length === 0 ? messageKind.somebody : anyOf(from.map(shownName))
}

/** Where messages match. */
function where({ channels = 'all', direct = true }: Rule): string {
  const onChannels =
    channels === 'all'
      ? messageKind.anyChannel
      : messageKind.onChannel(anyOf(channels.toSorted((a, b) => a - b).map(String)))
  const privately = messageKind.direct
  if (!direct) return onChannels
  return channels.length === 0 ? privately : anyOf([onChannels, privately])
}

function Fields({ rule, set }: FieldsProps<Rule>) {
  const areAll = (rule.channels ?? 'all') === 'all'
  const chosen = rule.channels === 'all' || rule.channels === undefined ? [] : rule.channels
  return (
    <>
      <WordList
        label={alertTexts.words}
        hint={alertTexts.wordsHint}
        words={rule.match?.words ?? []}
        set={(words) => set({ match: words.length === 0 ? null : { mode: rule.match?.mode ?? 'word', words } })}
      />
      <Select
        label={alertTexts.from}
        value={rule.from == null ? 'anybody' : 'list'}
        options={[
          ['anybody', alertTexts.anybody],
          ['list', alertTexts.watched.list],
        ]}
        onChange={(who) => set({ from: who === 'list' ? [] : null })}
      />
      {rule.from != null && <NodeList chosen={rule.from.map(idOf)} onChange={(chosen) => set({ from: [...chosen] })} />}
      <Switch checked={rule.direct ?? true} onChange={(direct) => set({ direct })}>
        {alertTexts.direct}
      </Switch>
      <Switch checked={areAll} onChange={(all) => set({ channels: all ? 'all' : [] })}>
        {alertTexts.allChannels}
      </Switch>
      <Channels
        chosen={chosen}
        hint={areAll ? alertTexts.allChannelsHint : alertTexts.channelsHint}
        set={(channels) => set({ channels })}
      />
    </>
  )
}

/** The channels that are on, and those of the rule. */
function Channels(props: { chosen: readonly number[]; hint: string; set(channels: number[]): void }) {
  const { chosen, hint, set } = props
  const { data, error } = useLoad(() => ask(api.channels.$get()), [])
  const known = data.value?.channels ?? []
  const names = new Map(known.map(({ index, name }) => [index, name || t.messages.channel(index)]))
  const on = known.flatMap(({ index, role }) => (role === 'DISABLED' ? [] : [index]))
  const offered = [...new Set([...on, ...chosen])].toSorted((a, b) => a - b)
  return (
    <Group legend={alertTexts.channels} hint={hint}>
      <Failure error={error.value} />
      {offered.map((index) => (
        <label class="check" key={index}>
          <input
            type="checkbox"
            checked={chosen.includes(index)}
            onChange={(event) => {
              const others = chosen.filter((other) => other !== index)
              set(event.currentTarget.checked ? [...others, index] : others)
            }}
          />{' '}
          {names.get(index) ?? t.messages.channel(index)}
        </label>
      ))}
    </Group>
  )
}
