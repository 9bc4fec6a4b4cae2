import type { Heard } from '../../../src/app/mesh/heard/heard.ts'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Ingest } from '../../../src/app/mesh/ingest/ingest.ts'
import { type Batcher, createBatcher } from '../../../src/node/radio/batcher.ts'
import { START } from '../../support/app.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { createTestMesh, FAR, heard, packet, type TestMesh, text } from '../../support/mesh/mesh.ts'

let mesh: TestMesh
let clock: ReturnType<typeof createManualClock>
/** Sizes of the stored batches. */
let batches: number[]
let batcher: Batcher

beforeEach(async () => {
  mesh = await createTestMesh()
  clock = createManualClock(START)
  batches = []
  batcher = open(mesh.ingest)
})
afterEach(() => mesh.app.close())

function open(ingest: Ingest, maxWaiting?: number): Batcher {
  const { log } = mesh.app.ports
  const counted: Ingest = {
    async store(batch) {
      const stored = await ingest.store(batch)
      batches.push(batch.length)
      return stored
    },
  }
  return createBatcher({ ingest: counted, log, clock, ...(maxWaiting !== undefined && { maxWaiting }) })
}

const messages = (count: number): Heard[] => Array.from({ length: count }, (_, n) => heard(packet(text(`m${n}`))))
const settle = async () => {
  for (let turn = 0; turn < 50; turn++) await setImmediate()
}
const errors = () => mesh.app.logged.filter((line) => line.includes('"level":"error"'))

/** Makes the database refuse every message, or accept them again. */
function setRefusal(sql: string | null): void {
  mesh.app.store.sqlite.exec('drop trigger if exists refusal')
  if (sql !== null) mesh.app.store.sqlite.exec(`create trigger refusal before insert on messages begin ${sql} end`)
}

describe('createBatcher', () => {
  it('stores the events of 100 ms as one batch', async () => {
    batcher.push(messages(1))
    clock.advance(99)
    batcher.push(messages(2))
    await settle()
    expect(batches).toStrictEqual([])
    expect(batcher.waiting()).toBe(3)
    clock.advance(1)
    await settle()
    expect(batches).toStrictEqual([3])
    expect(batcher.waiting()).toBe(0)
    expect(mesh.count('messages')).toBe(3)
    batcher.push(messages(1))
    clock.advance(100)
    await settle()
    expect(batches).toStrictEqual([3, 1])
  })

  it('stores 100 events without waiting, and never more in one transaction', async () => {
    batcher.push(messages(250))
    await settle()
    expect(batches).toStrictEqual([100, 100])
    clock.advance(100)
    await settle()
    expect(batches).toStrictEqual([100, 100, 50])
    expect(mesh.count('messages')).toBe(250)
  })

  it('lets a sender that can wait continue while few events wait', async () => {
    batcher.push(messages(1999))
    let hasRoom = false
    await batcher.room()
    batcher.push(messages(201))
    const next = batcher.room().then(() => (hasRoom = true))
    await Promise.resolve()
    expect(hasRoom).toBe(false)
    await next
    expect(batcher.waiting()).toBeLessThan(2000)
    batcher.push(messages(1000))
    const last = batcher.room()
    await batcher.close()
    await last
  })

  it('stores waiting events when it is closed, and reports later ones as an error', async () => {
    batcher.push(messages(250))
    await batcher.close()
    expect(mesh.count('messages')).toBe(250)
    expect(errors()).toStrictEqual([])
    batcher.push(messages(1))
    expect(errors()).toHaveLength(1)
  })
})

describe('a database that fails', () => {
  const failing = (error: Error) => {
    let isBroken = true
    const ingest: Ingest = {
      async store(batch) {
        if (isBroken) throw error
        return mesh.ingest.store(batch)
      },
    }
    return { ingest, repair: () => (isBroken = false) }
  }

  it('gets the same batch again at growing intervals until it accepts it', async () => {
    const { ingest, repair } = failing(Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' }))
    batcher = open(ingest)
    batcher.push(messages(3))
    for (const delay of [100, 200, 400, 800, 1600, 3200, 5000, 5000]) {
      clock.advance(delay - 1)
      await settle()
      const before = errors().length
      clock.advance(1)
      await settle()
      expect(errors()).toHaveLength(before + 1)
    }
    batcher.push(messages(2))
    repair()
    clock.advance(5000)
    await settle()
    clock.advance(100)
    await settle()
    expect(batches).toStrictEqual([3, 2])
    expect(mesh.count('messages')).toBe(5)
  })

  it('does not block senders of further events', async () => {
    const { ingest, repair } = failing(Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' }))
    batcher = open(ingest)
    batcher.push(messages(2500))
    await batcher.room()
    batcher.push(messages(10))
    await batcher.room()
    expect(batcher.waiting()).toBe(2510)
    repair()
    clock.advance(200)
    await settle()
    await batcher.close()
    expect(mesh.count('messages')).toBe(2510)
  })

  it('loses nothing of a batch that it refused half-way', async () => {
    const [event] = messages(1)
    if (event === undefined) throw new Error('no event')
    setRefusal(`select raise(rollback, 'for now');`)
    await expect(mesh.ingest.store([event])).rejects.toThrow()
    expect(mesh.count('nodes')).toBe(0)
    setRefusal(null)
    expect((await mesh.ingest.store([event])).news).toHaveLength(1)
    expect([mesh.count('nodes'), mesh.count('messages')]).toStrictEqual([1, 1])
  })

  it('holds a bounded number of events and reports what it drops', async () => {
    const { ingest, repair } = failing(Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' }))
    batcher = open(ingest, 300)
    batcher.push(messages(250))
    await settle()
    batcher.push(messages(60))
    batcher.push(messages(5))
    expect(errors().filter((line) => line.includes('Events are dropped'))).toHaveLength(1)
    repair()
    clock.advance(200)
    await settle()
    await batcher.close()
    expect(mesh.count('messages')).toBe(300)
    expect(errors().find((line) => line.includes('were dropped while'))).toContain('"events":15')
  })

  it('is not waited for endlessly when the service stops', async () => {
    const { ingest } = failing(Object.assign(new Error('disk full'), { code: 'SQLITE_FULL' }))
    batcher = open(ingest)
    batcher.push(messages(7))
    const closed = batcher.close()
    await settle()
    for (let second = 0; second < 10; second++) {
      clock.advance(1000)
      await settle()
    }
    await closed
    expect(errors().at(-1)).toContain('"events":7')
  })

  it('loses only the one event that it can never store', async () => {
    setRefusal(`select raise(abort, 'no') where new.text = 'm5';`)
    batcher.push(messages(9))
    clock.advance(100)
    await settle()
    await batcher.close()
    expect(mesh.count('messages')).toBe(8)
    expect(errors()).toHaveLength(1)
    expect(errors()[0]).toContain(`"from":${FAR}`)
  })
})
