import { catalog } from '../../../language.ts'
import { Segments } from '../../../parts/form/field.tsx'
import { Group, Labelled } from '../../../parts/form/labelled.tsx'
import { Card } from '../../../parts/page.tsx'
import { a } from '../../../strings/automation.ts'
import { MATCH_MODES, type MatchMode } from '../../../../shared/automation/rules.ts'
import { ALL_TOKEN_NAMES } from '../../../../shared/automation/tokens.ts'
import { ChannelChecks, type Form, Line, TemplateField } from '../fields.tsx'
import type { KindView, RuleOf } from './kind.ts'
import { MAX_REACTION } from '../../../../shared/limits.ts'

type Draft = {
  readonly mode: MatchMode
  /** One on each line. */
  readonly words: string
  readonly channels: readonly number[]
  readonly direct: boolean
  readonly answer: 'tapback' | 'text'
  readonly emoji: string
  readonly text: string
  readonly toSender: boolean
}

export const acknowledgeKind = catalog('acknowledgeKind', {
  name: 'Answer',
  help: 'Answers messages that contain certain words, with a reaction or a text.',
})

export const acknowledge: KindView<RuleOf<'acknowledge'>, Draft> = {
  ...acknowledgeKind,
  tokens: ALL_TOKEN_NAMES,
  empty: {
    mode: 'word',
    words: '',
    channels: [0],
    direct: true,
    answer: 'tapback',
    emoji: '👍',
    text: '',
    toSender: false,
  },
  draftOf({ match, channels, direct, answer }) {
    const how = answer.kind === 'tapback' ? { emoji: answer.emoji } : { text: answer.text, toSender: answer.direct }
    return { mode: match.mode, words: match.words.join('\n'), channels, direct, answer: answer.kind, ...how }
  },
  ruleOf: (draft, common) => ({
    kind: 'acknowledge',
    ...common,
    match: { mode: draft.mode, words: wordsOf(draft) },
    channels: [...draft.channels],
    direct: draft.direct,
    answer:
      draft.answer === 'tapback'
        ? { kind: 'tapback', emoji: draft.emoji.trim() }
        : { kind: 'text', text: draft.text, direct: draft.toSender },
  }),
  isWhole: (draft) =>
    wordsOf(draft).length > 0 &&
    (draft.channels.length > 0 || draft.direct) &&
    (draft.answer === 'tapback' ? draft.emoji : draft.text).trim() !== '',
  standIn: null,
  sampleOf(draft) {
    const { channels, direct } = draft
    const [text = 'ping'] = wordsOf(draft)
    const [channel = 0] = channels
    return { text, channel, direct: channels.length === 0 && direct }
  },
  Fields,
  summary: ({ match, channels, direct }, { name }) => [
    match.words.map((word) => `“${word}”`).join(', '),
    ...channels.map(name),
    ...(direct ? [a.directly] : []),
  ],
  facts: ({ match, answer }) => [
    [a.mode, a.modes[match.mode]],
    [a.answer, answer.kind === 'text' ? answer.text : answer.emoji],
  ],
}

function wordsOf({ words }: Draft): string[] {
  return words
    .split('\n')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

/** The messages that a rule answers, and its answer. */
function Fields({ form }: { form: Form<Draft> }) {
  const { draft, set, errorAt } = form
  return (
    <>
      <Card title={a.listen}>
        <Labelled label={a.words} hint={a.wordsHint} error={errorAt('match.words') && a.wordsNeeded}>
          {(aria) => (
            <textarea
              {...aria}
              rows={3}
              value={draft.words}
              onInput={(event) => set({ words: event.currentTarget.value })}
            />
          )}
        </Labelled>
        <Labelled label={a.mode}>
          {(aria) => (
            <select
              {...aria}
              value={draft.mode}
              onChange={(event) => {
                const mode = MATCH_MODES.find((one) => one === event.currentTarget.value)
                if (mode !== undefined) set({ mode })
              }}
            >
              {MATCH_MODES.map((mode) => (
                <option key={mode} value={mode}>
                  {a.modes[mode]}
                </option>
              ))}
            </select>
          )}
        </Labelled>
        <Group legend={a.heardOn} error={errorAt('channels') && a.heardNeeded}>
          <ChannelChecks channels={form.channels} value={draft.channels} onChange={(channels) => set({ channels })} />
          <label class="check">
            <input
              type="checkbox"
              checked={draft.direct}
              onChange={(event) => set({ direct: event.currentTarget.checked })}
            />
            {a.direct}
          </label>
        </Group>
      </Card>
      <AnswerCard form={form} />
    </>
  )
}

const EMOJIS = ['👍', '👋', '✅', '📡', '🏓', '❤️']

function AnswerCard({ form }: { form: Form<Draft> }) {
  const { draft, set } = form
  return (
    <Card title={a.answer}>
      <Segments
        label={a.answer}
        value={draft.answer}
        options={[
          ['tapback', a.answers.tapback],
          ['text', a.answers.text],
        ]}
        onChange={(answer) => set({ answer })}
      />
      {draft.answer === 'tapback' ? (
        <div class="stack tight">
          <Line
            form={form}
            label={a.emoji}
            hint={a.emojiHint}
            error={a.emojiHint}
            path="answer.emoji"
            value={draft.emoji}
            type="number"
            maxLength={MAX_REACTION}
            onInput={(emoji) => set({ emoji })}
          />
          <div class="chips">
            {EMOJIS.map((emoji) => (
              <button type="button" class="chip" key={emoji} onClick={() => set({ emoji })}>
                {emoji}
              </button>
            ))}
          </div>
        </div>
      ) : (
        <>
          <TemplateField form={form} path="answer.text" value={draft.text} onInput={(text) => set({ text })} />
          <label class="check">
            <input
              type="checkbox"
              checked={draft.toSender}
              onChange={(event) => set({ toSender: event.currentTarget.checked })}
            />
            {a.answerDirect}
          </label>
        </>
      )}
    </Card>
  )
}
