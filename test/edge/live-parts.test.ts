import { expect, test, vi } from 'vitest'
import { createLog } from '../../src/app/base/log.ts'
import { countNotes, follow, passOn, watchChanges } from '../../src/edge/live/gaps.ts'
import { FULL_HEADER, INDEX_HEADER, MOST_READERS, type Objects, OBJECTS } from '../../src/edge/live/protocol.ts'
import { openReaders } from '../../src/edge/live/readers.ts'
import { createNotes, openTelling } from '../../src/edge/live/telling.ts'
import type { Events } from '../../src/app/mesh/live/event.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const logged: string[] = []
const log = createLog({ level: 'debug', format: 'json', now: Date.now, write: (line) => logged.push(line) })
const NOTE = { kind: 'nodes', nums: [1] } as const

/** A namespace in this process, of objects with these methods. */
function objectsOf(object: (name: string) => object): Objects {
  return Object({ idFromName: (name: string) => name, get: object })
}

test('a change that nobody tells within a look is a gap, and one that is told late is none', () => {
  let gaps = 0
  const changes = watchChanges(() => (gaps += 1))
  changes.look(1)
  changes.look(1)
  changes.look(2)
  expect(gaps).toBe(0)
  changes.noteTold()
  changes.look(3)
  changes.look(3)
  expect(gaps).toBe(0)
  changes.look(4)
  changes.look(4)
  expect(gaps).toBe(1)
  changes.look(4)
  changes.look(4)
  expect(gaps).toBe(1)
})

test('a number that an isolate left out is a gap, unless the note comes late', () => {
  let gaps = 0
  const counted = countNotes(() => (gaps += 1))
  const tell = (by: string, ...counts: number[]) => {
    for (const count of counts) counted.noteTold({ by, count })
  }
  tell('one', 7, 8, 10, 9, 11, 13)
  tell('two', 1, 2)
  counted.look()
  tell('one', 12, 14, 16)
  counted.look()
  expect(gaps).toBe(0)
  tell('two', 3)
  counted.look()
  expect(gaps).toBe(1)
  tell('one', 17)
  counted.noteTold({ by: 'one', count: 20 }, true)
  counted.look()
  counted.look()
  expect(gaps).toBe(1)
})

test('a command that nobody takes is told as not sent when its minute is over, while somebody reads', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
  const store = openMemoryStore()
  try {
    const at = Date.now()
    store.sqlite
      .exec(`insert into sources (id, kind, name, local_node_num, created_at) values (1, 'ingest', 'hill', 5, 1);
      insert into messages (source_id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction, delivery_state)
        values (1, 9, 5, 6, 0, 'x', ${at}, 'out', 'waiting');
      insert into radio_commands (id, source_id, kind, content, asked_by, from_node_num, packet_id, created_at, expires_at)
        values ('c', 1, 'text', '{}', 'me', 5, 9, ${at}, ${at + 60_000})`)
    const opened: Events[] = []
    const serve = (events: Events) => {
      opened.push(events)
      return { ports: { store, log }, fetch: async () => new Response(null) }
    }
    const readers = openReaders({ objects: objectsOf(() => ({})), index: 0, serve })
    const [events] = opened
    const leave = events?.subscribe(1, () => {})
    await readers.tell({ notes: [{ kind: 'heard', events: [] }], isMissing: false })
    expect(vi.getTimerCount()).toBe(0)
    const sent = { kind: 'delivery', data: { fromNodeNum: 5, packetId: 9 } } as const
    await readers.tell({ notes: [{ kind: 'events', events: [sent] }], isMissing: false })
    const state = () => store.sqlite.prepare('select delivery_state from messages').pluck().get()
    await vi.advanceTimersByTimeAsync(59_999)
    expect([state(), events?.last()]).toStrictEqual(['waiting', 1])
    await vi.advanceTimersByTimeAsync(400)
    expect([state(), events?.last()]).toStrictEqual(['failed', 2])
    leave?.()
  } finally {
    vi.useRealTimers()
    store.close()
  }
})

test('an object is not idle from when its first reader comes', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    const ports = Object({ store: null, log })
    const serve = () => ({ ports, fetch: async () => new Response(null, { status: 401 }) })
    const readers = openReaders({ objects: objectsOf(() => ({})), index: 0, serve })
    vi.setSystemTime(Date.now() + 3_600_000)
    expect(readers.isIdle()).toBe(true)
    const answer = readers.fetch(new Request('http://mesh.test/api/events'))
    expect(readers.isIdle()).toBe(false)
    expect((await answer).status).toBe(401)
  } finally {
    vi.useRealTimers()
  }
})

test('notes that could not be told are reported with the next ones', async () => {
  const sent: unknown[] = []
  let failures = 3
  const notes = createNotes(
    async (told) => {
      if (failures-- > 0) throw new Error('down')
      sent.push(told)
    },
    log,
    [0, 0],
  )
  notes.add(NOTE)
  expect(notes.isDue()).toBe(true)
  await notes.tell()
  expect([sent, notes.isDue()]).toStrictEqual([[], false])
  expect(logged.join()).toContain('Live events were lost')
  for (let n = 0; n < 2; n++) {
    notes.add(NOTE)
    await notes.tell()
  }
  expect(sent).toStrictEqual([
    { notes: [NOTE], isMissing: true, counted: { by: expect.any(String), count: 2 } },
    { notes: [NOTE], isMissing: false, counted: { by: expect.any(String), count: 3 } },
  ])
})

test('above the readers of one object others share them, and learn what they missed', async () => {
  let gaps = 0
  let isLost = false
  const told: unknown[] = []
  let first = passOn(
    objectsOf(() => ({ tell })),
    'one',
  )
  const other = follow(
    objectsOf(() => ({ join: async (index: number) => first.join(index) })),
    3,
    () => (gaps += 1),
  )
  async function tell(given: { passed: Parameters<typeof other.noteTold>[0]; notes: unknown }): Promise<void> {
    if (isLost) throw new Error('unreachable')
    other.noteTold(given.passed)
    told.push(given.notes)
  }
  first.tell([NOTE], false)
  expect(first.hasAny()).toBe(false)
  await other.join()
  expect(first.hasAny()).toBe(true)
  first.tell([NOTE], false)
  first.tell([NOTE], false)
  await other.join()
  expect([told, gaps]).toStrictEqual([[[NOTE], [NOTE]], 0])
  isLost = true
  first.tell([NOTE], false)
  await other.join()
  expect(gaps).toBe(1)
  isLost = false
  first = passOn(
    objectsOf(() => ({ tell })),
    'two',
  )
  await other.join()
  expect(gaps).toBe(2)
})

test('a stream is in the first object with room, and refused if there is none', async () => {
  let full = 2
  const objects = objectsOf((name) => ({
    fetch: async ({ headers }: Request) =>
      Number(headers.get(INDEX_HEADER)) < full
        ? new Response(null, { status: 503, headers: { [FULL_HEADER]: '' } })
        : new Response(name),
  }))
  const { elsewhere } = openTelling(objects, log).events
  const open = async () => elsewhere?.open(new Request('http://mesh.test/api/events'))
  expect(await (await open())?.text()).toBe('live-2')
  full = OBJECTS
  await expect(open()).rejects.toMatchObject({ code: 'rate_limited' })
  expect(OBJECTS * MOST_READERS).toBe(10_000)
})
