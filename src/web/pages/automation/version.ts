import { api, ApiError, send } from '../../api.ts'
import { askFirst } from '../../parts/dialog.tsx'
import { say } from '../../parts/notice.tsx'
import { a } from '../../strings/automation.ts'
import { t } from '../../strings.ts'

/** Precondition: the change applies only to this version of a rule. */
export function ifMatch(revision: number): Record<string, string> {
  return { 'If-Match': `"${revision}"` }
}

/** The answer; null: the rule has changed since. */
export async function unlessChanged<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (isChanged(error)) return null
    throw error
  }
}

function isChanged(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'automation_changed'
}

type Named = { readonly id: number; readonly name: string; readonly revision: number }

/** Deletes a rule after a confirmation. If the rule has changed meanwhile, it stays and is reloaded. */
export function deleteFirst({ id, name, revision }: Named, onDeleted: () => void, reload: () => Promise<void>): void {
  askFirst({
    text: a.deleteSure(name),
    confirm: t.common.delete,
    isDangerous: true,
    act: async () => {
      const request = api.automation[':id'].$delete({ param: { id: String(id) } }, { headers: ifMatch(revision) })
      try {
        await send(request)
      } catch (error) {
        if (isChanged(error)) await reload()
        throw error
      }
      say(a.deleted)
      onDeleted()
    },
  })
}
