import { useSignal } from '@preact/signals'
import { Labelled } from '../../../parts/form/labelled.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { alertTexts } from '../../../strings/alerts.ts'
import { t } from '../../../strings.ts'

type Props = { label: string; hint: string; words: readonly string[]; set(words: string[]): void }

/** Words that are added one by one, each with a button to remove it. */
export function WordList({ label, hint, words, set }: Props) {
  const typed = useSignal('')
  const add = () => {
    const word = typed.value.trim()
    typed.value = ''
    if (word !== '' && !words.includes(word)) set([...words, word])
  }
  return (
    <>
      {words.length > 0 && (
        <ul class="picked">
          {words.map((word) => (
            <li key={word}>
              {word}
              <button
                type="button"
                class="icon-button"
                aria-label={t.nodes.takeOut(word)}
                onClick={() => set(words.filter((one) => one !== word))}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <Labelled label={label} hint={hint}>
        {(aria) => (
          <div class="word-add">
            <input
              {...aria}
              type="text"
              value={typed.value}
              onInput={(event) => (typed.value = event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== 'Enter' || typed.value.trim() === '') return
                event.preventDefault()
                add()
              }}
              // A word that is typed but not added counts as well.
              onBlur={add}
            />
            <button type="button" class="button" onClick={add}>
              {alertTexts.add}
            </button>
          </div>
        )}
      </Labelled>
    </>
  )
}
