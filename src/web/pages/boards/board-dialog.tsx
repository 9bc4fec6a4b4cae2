import { useSignal } from '@preact/signals'
import { BOARD_SHARINGS, MAX_BOARD_NAME } from '../../../shared/mesh/boards.ts'
import { api, send } from '../../api.ts'
import { askFirst, Dialog } from '../../parts/dialog.tsx'
import { Field, handleForm, SaveOrCancel, Select } from '../../parts/form/field.tsx'
import { Failure, say } from '../../parts/notice.tsx'
import { navigate } from '../../router.ts'
import { useAction } from '../../state/load.ts'
import { boardTexts } from '../../strings/mesh/boards.ts'
import { t } from '../../strings.ts'
import type { Board } from './board-state.ts'

type Props = { board: Board; onSave(board: Board): Promise<void>; onClose(): void }

/** The name of a board, with whom it is shared, and its end. */
export function BoardDialog({ board, onSave, onClose }: Props) {
  const { error, busy, run } = useAction()
  const sharing = useSignal(board.sharing ?? 'nobody')
  const submit = handleForm(async (text) => {
    const isDone = await run(() =>
      onSave({
        ...board,
        name: text('name'),
        sharing: sharing.value,
        readers: sharing.value === 'named' ? namesIn(text('readers')) : [],
      }),
    )
    if (isDone) onClose()
  })
  const remove = () => {
    onClose()
    askFirst({
      text: boardTexts.deleteSure(board.name),
      confirm: t.common.delete,
      isDangerous: true,
      act: async () => {
        await send(api.boards[':id'].$delete({ param: { id: String(board.id) } }))
        say(boardTexts.deleted)
        navigate('/boards', { replace: true })
      },
    })
  }
  return (
    <Dialog title={boardTexts.settings} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field
          label={boardTexts.name}
          name="name"
          defaultValue={board.name}
          maxLength={MAX_BOARD_NAME}
          required
          autocomplete="off"
        />
        <Select
          label={boardTexts.sharing}
          value={sharing.value}
          options={BOARD_SHARINGS.map((each) => [each, boardTexts.sharings[each]] as const)}
          onChange={(next) => (sharing.value = next)}
        />
        {sharing.value === 'named' && (
          <Field
            label={boardTexts.readers}
            hint={boardTexts.readersHelp}
            name="readers"
            defaultValue={board.readers.join(' ')}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
          />
        )}
        {sharing.value !== 'nobody' && <p class="about">{boardTexts.sharingHelp}</p>}
        <Failure error={error.value} />
        <SaveOrCancel busy={busy.value} onCancel={onClose} />
        <button type="button" class="button danger-quiet" onClick={remove}>
          {t.common.delete}
        </button>
      </form>
    </Dialog>
  )
}

/** Each name once, whatever its capitals: usernames have no spaces. */
function namesIn(text: string): string[] {
  const names = text.split(/[\s,;]+/).filter((name) => name !== '')
  return [...new Map(names.map((name) => [name.toLowerCase(), name])).values()]
}
