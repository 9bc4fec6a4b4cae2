import type { InferResponseType } from 'hono/client'
import { useSignal } from '@preact/signals'
import { MAX_BOARD_NAME } from '../../../shared/mesh/boards.ts'
import { api, ask, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Field, handleForm, SaveOrCancel } from '../../parts/form/field.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty, Failure } from '../../parts/notice.tsx'
import { Card, Page } from '../../parts/page.tsx'
import { href, navigate } from '../../router.ts'
import { useAction, useLoad } from '../../state/load.ts'
import { boardTexts } from '../../strings/mesh/boards.ts'
import { t } from '../../strings.ts'
import { moved } from './board-state.ts'

type Listed = InferResponseType<(typeof api.boards)['$get'], 200>['boards'][number]

/** The boards of the user, and those that others share with them. */
export function BoardsPage() {
  const { data, error, reload } = useLoad(() => ask(api.boards.$get()), [])
  const isAdding = useSignal(false)
  const found = data.value
  const own = found?.boards.filter(({ isOwn }) => isOwn) ?? []
  const others = found?.boards.filter(({ isOwn }) => !isOwn) ?? []
  return (
    <Page
      title={t.nav.boards}
      actions={
        found !== null &&
        own.length < found.maxBoards && (
          <button type="button" class="button primary" onClick={() => (isAdding.value = true)}>
            {boardTexts.add}
          </button>
        )
      }
    >
      <Failure error={error.value} retry={reload} />
      {found?.boards.length === 0 && (
        <Empty icon="boards" title={boardTexts.none}>
          <p>{boardTexts.noneHelp}</p>
        </Empty>
      )}
      {own.length > 0 && (
        <Card title={boardTexts.own}>
          <OwnBoards boards={own} onChanged={reload} />
        </Card>
      )}
      {others.length > 0 && (
        <Card title={boardTexts.others}>
          <ul class="rows">
            {others.map((board) => (
              <li key={board.id}>
                <BoardLink {...board} />
                <span class="faint">{boardTexts.by(board.owner)}</span>
              </li>
            ))}
          </ul>
        </Card>
      )}
      {isAdding.value && <NewBoard onClose={() => (isAdding.value = false)} />}
    </Page>
  )
}

function BoardLink({ id, name }: Listed) {
  return (
    <a class="grow break" dir="auto" href={href(`/boards/${id}`)}>
      {name}
    </a>
  )
}

function OwnBoards({ boards, onChanged }: { boards: readonly Listed[]; onChanged(): Promise<void> }) {
  const moving = useAction()
  const move = (index: number, by: -1 | 1) =>
    moving.run(async () => {
      const ids = moved(boards, index, by).map(({ id }) => id)
      await send(api.boards.order.$put({ json: { ids } }))
      await onChanged()
    })
  return (
    <>
      <Failure error={moving.error.value} />
      <ul class="rows">
        {boards.map((board, index) => (
          <li key={board.id}>
            <BoardLink {...board} />
            {board.sharing !== null && board.sharing !== 'nobody' && (
              <span class="faint">{boardTexts.sharings[board.sharing]}</span>
            )}
            <MoveButtons
              name={board.name}
              index={index}
              count={boards.length}
              isBusy={moving.busy.value}
              onMove={(by) => move(index, by)}
            />
          </li>
        ))}
      </ul>
    </>
  )
}

type MoveProps = { name: string; index: number; count: number; isBusy: boolean; onMove(by: -1 | 1): void }

/** Buttons that move one of several things in their order. */
export function MoveButtons({ name, index, count, isBusy, onMove }: MoveProps) {
  if (count < 2) return null
  return (
    <span class="row-actions">
      <button
        type="button"
        class="icon-button"
        aria-label={boardTexts.up(name)}
        disabled={isBusy || index === 0}
        onClick={() => onMove(-1)}
      >
        <Icon name="up" />
      </button>
      <button
        type="button"
        class="icon-button"
        aria-label={boardTexts.down(name)}
        disabled={isBusy || index === count - 1}
        onClick={() => onMove(1)}
      >
        <Icon name="down" />
      </button>
    </span>
  )
}

function NewBoard({ onClose }: { onClose(): void }) {
  const { error, busy, run } = useAction()
  const submit = handleForm(async (text) => {
    await run(async () => {
      const { board } = await ask(api.boards.$post({ json: { name: text('name') } }))
      onClose()
      navigate(`/boards/${board.id}`)
    })
  })
  return (
    <Dialog title={boardTexts.add} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field label={boardTexts.name} name="name" maxLength={MAX_BOARD_NAME} required autofocus autocomplete="off" />
        <Failure error={error.value} />
        <SaveOrCancel busy={busy.value} onCancel={onClose} />
      </form>
    </Dialog>
  )
}
