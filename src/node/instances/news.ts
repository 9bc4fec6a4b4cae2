import type { NewEvent, Events } from '../../app/mesh/live/event.ts'
import * as z from 'zod'
import type { createEvents } from '../../app/mesh/live/events.ts'
import type { InstancesFile } from './file.ts'

/** Messages kept for instances that were busy for a moment. */
const KEPT_NOTES = 500
/** Messages read at once. */
const PAGE = 100

/** A message from one instance to the others. */
type Note = {
  readonly events?: readonly NewEvent[]
  readonly forgetNode?: number
  readonly markNode?: number
}

// Written by an instance of the same version.
const noteSchema = z.custom<Note>((value) => typeof value === 'object' && value !== null)

export type News = {
  /** The live events of all instances. */
  readonly events: Events
  /** Tells the instance with the radios to delete a node from their memory. */
  forgetNode(nodeNum: number): void
  /** Tells it that a node was marked. */
  markNode(nodeNum: number): void
  /** Returns the messages of the others since the last call. */
  take(): void
}

type Needs = {
  readonly file: InstancesFile
  /** The events of this instance's own streams. */
  readonly own: ReturnType<typeof createEvents>
  /** Whether another instance would read a message. */
  readonly hasOthers: () => boolean
  readonly onForgetNode: (nodeNum: number) => void
  readonly onMarkNode: (nodeNum: number) => void
  readonly onError: (error: unknown) => void
}

/** Passes events between the instances on one DATA_DIR. Writes nothing while there is only one. */
export function shareNews({ file, own, hasOthers, onForgetNode, onMarkNode, onError }: Needs): News {
  const { sqlite, id: origin } = file
  const insert = sqlite.prepare('insert into news (origin, body) values (?, ?)')
  const trim = sqlite.prepare(`delete from news where id <= (select max(id) from news) - ${KEPT_NOTES}`)
  const page = sqlite.prepare<[number], { id: number; origin: string; body: string }>(
    `select id, origin, body from news where id > ? order by id limit ${PAGE}`,
  )
  let last =
    sqlite.prepare<[], number>("select coalesce(max(seq), 0) from sqlite_sequence where name = 'news'").pluck().get() ??
    0
  const write = sqlite.transaction((note: Note) => {
    insert.run(origin, JSON.stringify(note))
    trim.run()
  })
  const tell = (note: Note) => {
    if (!hasOthers()) return
    try {
      write.immediate(note)
    } catch (error) {
      onError(error)
    }
  }
  return {
    events: {
      ...own,
      publish(events) {
        own.publish(events)
        if (events.length > 0) tell({ events })
      },
    },
    forgetNode: (forgetNode) => tell({ forgetNode }),
    markNode: (markNode) => tell({ markNode }),
    take() {
      for (;;) {
        const notes = page.all(last)
        const [first] = notes
        if (first === undefined) return
        if (first.id > last + 1) own.skip()
        last = notes.at(-1)?.id ?? last
        for (const note of notes) {
          if (note.origin === origin) continue
          const { events, forgetNode, markNode } = noteSchema.parse(JSON.parse(note.body))
          if (events !== undefined) own.publish(events)
          if (forgetNode !== undefined) onForgetNode(forgetNode)
          if (markNode !== undefined) onMarkNode(markNode)
        }
      }
    },
  }
}
