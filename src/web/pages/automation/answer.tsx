import { Segments } from '../../parts/form/field.tsx'
import { Group, Labelled } from '../../parts/form/labelled.tsx'
import { Card } from '../../parts/page.tsx'
import { a } from '../../strings/automation.ts'
import { ChannelChecks, type Form, Line, TemplateField } from './fields.tsx'
import { MATCH_MODES } from '../../../shared/rule-kinds.ts'

/** What a rule listens to, and how it answers. */
export function AnswerFields({ form }: { form: Form }) {
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
          <ChannelChecks channels={form.channels} value={draft.heardOn} onChange={(heardOn) => set({ heardOn })} />
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

function AnswerCard({ form }: { form: Form }) {
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
            maxLength={16}
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
          <TemplateField
            form={form}
            path="answer.text"
            value={draft.answerText}
            onInput={(answerText) => set({ answerText })}
          />
          <label class="check">
            <input
              type="checkbox"
              checked={draft.answerDirect}
              onChange={(event) => set({ answerDirect: event.currentTarget.checked })}
            />
            {a.answerDirect}
          </label>
        </>
      )}
    </Card>
  )
}
