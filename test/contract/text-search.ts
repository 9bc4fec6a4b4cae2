import { sql } from 'drizzle-orm'
import * as fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { listAudit } from '../../src/app/audit/audit.ts'
import { listNodes } from '../../src/app/mesh/nodes/list/list.ts'
import { WHOLE_VIEW } from '../../src/app/accounts/access/visible.ts'
import { ALL_PERMISSIONS } from '../../src/shared/access/resources.ts'
import { listMessages } from '../../src/app/mesh/messages/messages.ts'
import { buildTextIndexes } from '../../src/app/search/build.ts'
import { matching } from '../../src/app/search/text-index.ts'
import { createLog } from '../../src/app/base/log.ts'
import { auditLog, messages, nodes } from '../../src/db/schema.ts'
import type { Store } from '../../src/db/store.ts'
import { BROADCAST } from '../../src/meshtastic/node-id.ts'
import { DAY_MS } from '../../src/shared/time.ts'

const NOW = Date.UTC(2026, 0, 15, 12)

const log = createLog({ level: 'error', format: 'json', now: () => NOW, write: () => {} })

/** What SQLite's lower() does to a text: only ASCII letters have a case. */
const lowered = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
const has = (text: string, part: string) => lowered(text).includes(lowered(part))

/**
 * Few characters, so that parts match: case in and beyond ASCII, signs of LIKE and of FTS5, combining ones, emoji, NUL.
 */
const CHARACTERS = ['a', 'A', 'b', 'B', 'ä', 'Ä', 'ß', 'İ', 'ı', 'ſ', 'K', 'é', 'e\u0301', ' ', '%', '_', '"', "'"]
const SIGNS = [
  '*',
  '^',
  '-',
  '(',
  ')',
  ':',
  '\\',
  '\n',
  '\0',
  '👍',
  '👍🏽',
  '日',
  '本',
  '\u{e000}',
  '\u{e001}',
  '\u{e002}',
]
const character = fc.constantFrom(...CHARACTERS, ...SIGNS, 'AND', 'NEAR')
const words = (max: number) => fc.array(character, { minLength: 1, maxLength: max }).map((all) => all.join(''))

/** Texts, and a text to look for: mostly a part of one of them. */
const search = fc.array(words(12), { minLength: 1, maxLength: 12 }).chain((texts) => {
  const part = fc
    .tuple(fc.constantFrom(...texts), fc.nat(11), fc.integer({ min: 1, max: 9 }), fc.boolean())
    .map(([text, at, length, isUpper]) => {
      const all = [...text]
      const cut = all.slice(at % all.length, (at % all.length) + length).join('')
      return isUpper ? cut.toUpperCase() : cut
    })
  return fc.record({
    texts: fc.constant(texts),
    parts: fc.array(fc.oneof(part, words(4)), { minLength: 1, maxLength: 6 }),
  })
})

/** Searching texts on each store. `open` returns one with a migrated database, the same one at each call. */
export function textSearchContract(name: string, open: () => Store, runs: number): void {
  const insert = async (texts: readonly string[], at = 1, timestamp = NOW) => {
    const [first, ...others] = texts.map((text, index) =>
      open()
        .db.insert(messages)
        .values({
          packetId: at + index,
          fromNodeNum: 7,
          toNodeNum: BROADCAST,
          channel: 0,
          text,
          timestamp,
          direction: 'in',
        }),
    )
    if (first !== undefined) await open().atomic([first, ...others])
  }
  /** The texts of the matching messages, newest first. */
  const find = async (query: Partial<Parameters<typeof listMessages>[1]>): Promise<string[]> => {
    const page: { messages: { text: string }[] } = JSON.parse(
      await listMessages(open(), { limit: 1000, ...query }, WHOLE_VIEW),
    )
    return page.messages.map(({ text }) => text)
  }
  const indexesOf = async (table: string) =>
    table === 'messages'
      ? (await open().db.all<{ name: string }>(sql`select name from text_parts order by before desc`)).map(
          ({ name }) => name,
        )
      : [`${table}_text`]
  /** As after a restore: nothing is indexed, and messages have one part, which is of the month of 1 January 2026. */
  const forget = async () => {
    const { db } = open()
    for (const table of ['messages', 'nodes', 'audit_log']) {
      const [index = ''] = (await indexesOf(table)).map((name) => sql.raw(name))
      await db.run(sql`insert into ${index} (${index}) values ('delete-all')`)
      await db.run(sql`update text_indexes set indexed_from = (select coalesce(max(id), 0) + 1 from ${sql.raw(table)})
        where table_name = ${table}`)
    }
    await db.run(sql`delete from text_parts where before <> ${Number.MAX_SAFE_INTEGER}`)
    await db.run(sql`update text_parts set month = ${2026 * 12}`)
  }
  /** Builds the indexes in slices of one row; `slices` limits their number. */
  const build = async (slices = Number.POSITIVE_INFINITY) => {
    let left = slices
    await buildTextIndexes(
      { store: open(), log, now: () => NOW },
      async () => --left > 0,
      () => 0.001,
    )
  }
  const isWhole = async (table: string) => {
    for (const name of await indexesOf(table)) {
      const index = sql.raw(name)
      await open().db.run(sql`insert into ${index} (${index}) values ('integrity-check')`)
      expect(await open().db.get(sql`select v from ${sql.raw(`${name}_config`)} where k = 'crisismerge'`)).toEqual({
        v: 64,
      })
    }
  }

  describe(`text search: ${name}`, () => {
    beforeEach(async () => {
      await open().db.delete(messages).run()
      await open().db.delete(nodes).run()
    })

    test('FTS5 merges no index in one long step', async () => {
      for (const table of ['messages', 'nodes', 'audit_log']) await isWhole(table)
    })

    test('finds all texts with the part: indexed by triggers, not at all, half-way and in slices', async () => {
      await fc.assert(
        fc.asyncProperty(search, async ({ texts, parts }) => {
          await open().db.delete(messages).run()
          const expectAll = async (state: string) => {
            for (const q of parts) {
              const expected = texts.filter((text) => has(text, q)).toReversed()
              expect(await find({ q }), `${state}: ${JSON.stringify(q)}`).toStrictEqual(expected)
            }
          }
          await insert(texts)
          await expectAll('triggers')
          await forget()
          await expectAll('no index')
          await build(Math.ceil(texts.length / 2))
          await expectAll('half an index')
          await build()
          await expectAll('built')
          await isWhole('messages')
        }),
        { numRuns: runs },
      )
    })

    test('a new month begins a part of the index, and a part goes when all of its messages have gone', async () => {
      const { db } = open()
      const at = async (now: number) => buildTextIndexes({ store: open(), log, now: () => now }, async () => true)
      const tables = async () =>
        (
          await db.all<{ name: string }>(sql`select name from sqlite_master where name glob 'messages_text*'
          and sql glob 'CREATE VIRTUAL*' order by rowid`)
        ).length
      await forget()
      await insert(['words of the first month', 'more words'])
      await at(NOW)
      await at(NOW + 40 * DAY_MS)
      const before = await tables()
      await insert(['words of the second'], 100)
      await at(NOW + 40 * DAY_MS)
      await at(NOW + 80 * DAY_MS)
      await insert(['words of the third'], 200)
      expect(await tables()).toBe(before + 1)
      expect(await find({ q: 'words' })).toStrictEqual([
        'words of the third',
        'words of the second',
        'more words',
        'words of the first month',
      ])
      expect(await find({ q: 'the first month' })).toStrictEqual(['words of the first month'])
      await db
        .delete(messages)
        .where(sql`packet_id < 100`)
        .run()
      expect(await find({ q: 'words' })).toStrictEqual(['words of the third', 'words of the second'])
      // A search may still read the part, so it is dropped in the next run.
      await at(NOW + 80 * DAY_MS)
      await at(NOW + 80 * DAY_MS)
      expect(await tables()).toBe(2)
      expect(await find({ q: 'words' })).toStrictEqual(['words of the third', 'words of the second'])
      await db.delete(messages).run()
      await at(NOW + 80 * DAY_MS)
      await at(NOW + 80 * DAY_MS)
      expect(await tables()).toBe(1)
    })

    test('after a restore the months before are indexed in parts of their own', async () => {
      await insert(['oldest words'], 1, NOW - 80 * DAY_MS)
      await insert(['older words'], 2, NOW - 40 * DAY_MS)
      await insert(['words of today'], 3)
      await forget()
      await build()
      expect((await indexesOf('messages')).length).toBeGreaterThan(2)
      await isWhole('messages')
      for (const words of ['oldest words', 'older words', 'words of today']) {
        expect(await find({ q: words })).toStrictEqual([words])
      }
      expect(await find({ q: 'words' })).toHaveLength(3)
    })

    test('imported messages, whose ids are below 0, are indexed and found', async () => {
      const { db } = open()
      await insert(['words of ours', 'more of ours'], 1)
      const ours = (await db.all<{ id: number }>(sql`select min(id) as id from messages`))[0]?.id ?? 0
      // As a small service whose ids begin at 1.
      await db.run(sql`update messages set id = id - ${ours - 1}`)
      await db.run(sql`with recursive i(n) as (select 1 union all select n + 1 from i where n < 9)
        insert into messages (id, packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
        select -n, 100 + n, 7, ${BROADCAST}, 0, 'words ' || n, ${NOW} - n * 10 * ${DAY_MS}, 'in' from i`)
      const words = Array.from({ length: 9 }, (_, at) => `words ${at + 1}`)
      const expectAll = async () => {
        expect(await find({ q: 'words' })).toStrictEqual(['words of ours', ...words])
        expect(await find({ q: 'words', before: 0 })).toStrictEqual(words)
        expect(await find({ q: 'words', before: -4 })).toStrictEqual(words.slice(4))
        expect(await find({ q: 'words 9' })).toStrictEqual(['words 9'])
      }
      const indexedFrom = () => db.get(sql`select indexed_from as id from text_indexes where table_name = 'messages'`)
      await forget()
      await expectAll()
      await build(6)
      expect(await indexedFrom()).toEqual({ id: -4 })
      await expectAll()
      await build()
      expect(await indexedFrom()).toEqual({ id: -9 })
      await expectAll()
      await isWhole('messages')
      await db.delete(messages).run()
      await forget()
    })

    test('every part and none of a text, and what a message has', async () => {
      await insert(['the red fox', 'fox on the hill', 'no animal', 'at 52.5200, 13.4050', '👍', 'A B'])
      await open().db.run(sql`update messages set emoji = text = '👍', reply_id = iif(text = '👍', 2, null),
        routing_error = iif(text = 'no animal', 'NO_ACK', null)`)
      expect(await find({ q: 'fox', also: ['the'] })).toStrictEqual(['fox on the hill', 'the red fox'])
      expect(await find({ also: ['hill', 'fox'] })).toStrictEqual(['fox on the hill'])
      expect(await find({ also: ['b', 'a'] })).toStrictEqual(['A B'])
      expect(await find({ q: 'fox', without: ['red', 'blue'] })).toStrictEqual(['fox on the hill'])
      expect(await find({ without: ['o', '👍'] })).toStrictEqual(['A B', 'at 52.5200, 13.4050'])
      expect(await find({ has: ['position'] })).toStrictEqual(['at 52.5200, 13.4050'])
      expect(await find({ has: ['reaction'] })).toStrictEqual(['fox on the hill'])
      expect(await find({ has: ['error'] })).toStrictEqual(['no animal'])
      expect(await find({ has: ['error', 'reaction'] })).toStrictEqual([])
      expect(await find({ q: 'fox', has: ['reaction'], from: 7, since: 0 })).toStrictEqual(['fox on the hill'])
    })

    test('of many reactions to a message only some are looked at, because anybody can send them', async () => {
      const { db } = open()
      await insert(['asked', 'flooded'])
      const view = { ...WHOLE_VIEW, channels: { read: [0], write: [] }, direct: { read: false, write: false } }
      const react = async (to: number, from: number, count: number, node: number) =>
        db.run(sql`with recursive i(n) as (select 1 union all select n + 1 from i where n < ${count})
          insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction, emoji, reply_id)
          select ${from} + n, 7, ${node}, 0, '👍', ${NOW}, 'in', 1, ${to} from i`)
      // Most are direct messages, which this viewer does not see.
      await react(1, 1000, 49, 9)
      await react(1, 2000, 1, BROADCAST)
      await react(2, 3000, 60, 9)
      await react(2, 4000, 1, BROADCAST)
      const page: { messages: { text: string }[] } = JSON.parse(
        await listMessages(open(), { limit: 10, has: ['reaction'] }, view),
      )
      expect(page.messages.map(({ text }) => text)).toStrictEqual(['asked'])
      expect(await find({ has: ['reaction'] })).toStrictEqual(['flooded', 'asked'])
    })

    test('the index is asked for some of a long search, and the texts are compared with all of it', async () => {
      const parts = Array.from({ length: 11 }, (_, n) =>
        Array.from({ length: 40 }, (__, at) => `${'abcdefghijk'[n]}${String(at).padStart(3, '0')} `).join(''),
      )
      expect(matching(...parts)?.split(' AND ')).toHaveLength(20)
      expect(matching(`\0${'\0ab'.repeat(30)}`, ...parts)?.split(' AND ')).toHaveLength(20)
      await insert([parts.join(''), parts.slice(0, 10).join('')])
      const [q, ...also] = parts
      expect(await find({ q, also })).toStrictEqual([parts.join('')])
    })

    test('other work runs while the messages of a node are searched', async () => {
      const { db } = open()
      await db.run(sql`with recursive i(n) as (select 1 union all select n + 1 from i where n < 1000)
        insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
        select n, 7, ${BROADCAST}, 0, 'word ' || n, ${NOW}, 'in' from i`)
      let isServed = false
      setTimeout(() => (isServed = true), 0)
      const all = Array.from({ length: 1000 }, (_, at) => `word ${1000 - at}`)
      expect(await find({ from: 7, also: ['word'] })).toStrictEqual(all)
      expect(isServed).toBe(true)
      expect(await find({ from: 7, also: ['word'], limit: 400 })).toStrictEqual(all.slice(0, 400))
      expect(await find({ since: NOW, q: 'word 1', limit: 2 })).toStrictEqual(['word 1000', 'word 199'])
      expect(await find({ since: NOW, q: 'word 1', without: ['0'] })).toHaveLength(91)
    })

    test('rows with all trigrams but without the part itself are skipped, however many', async () => {
      const { db } = open()
      await insert(['abcabd'])
      await db.run(sql`with recursive i(n) as (select 2 union all select n + 1 from i where n < 1000)
        insert into messages (packet_id, from_node_num, to_node_num, channel, text, timestamp, direction)
        select n, 7, ${BROADCAST}, 0, iif(n = 900, 'ABCABD', 'abc abd'), ${NOW}, 'in' from i`)
      expect(await find({ q: 'abcabd' })).toStrictEqual(['ABCABD', 'abcabd'])
      expect(await find({ q: 'abc abd', limit: 300 })).toHaveLength(300)
      expect(await find({ q: 'abc abd' })).toHaveLength(998)
    })

    test('a page ends after a limited amount of work, or when its reader has gone, and says where to continue', async () => {
      const { db } = open()
      await insert(['far back 👍', 'then nothing', 'far again 👍'])
      for (const [text, id] of [
        ['far back 👍', 5],
        ['then nothing', 400_000],
        ['far again 👍', 700_000],
      ] as const) {
        await db
          .update(messages)
          .set({ id: 1_000_000 + id })
          .where(sql`text = ${text}`)
          .run()
      }
      await forget()
      for (const q of ['👍', 'far']) {
        const pages: string[][] = []
        let before: number | null | undefined
        while (before !== null) {
          const page: { messages: { text: string }[]; nextBefore: number | null } = JSON.parse(
            await listMessages(open(), { limit: 1, q, before }, WHOLE_VIEW),
          )
          pages.push(page.messages.map(({ text }) => text))
          before = page.nextBefore
        }
        // A slow database needs pages without a message in between.
        expect(pages.filter((page) => page.length > 0)).toStrictEqual([['far again 👍'], ['far back 👍']])
        // Nobody waits for this page any more, so it ends after its first query.
        const gone: { messages: unknown[]; nextBefore: number | null } = JSON.parse(
          await listMessages(open(), { limit: 10, q: `${q} nowhere`, signal: AbortSignal.abort() }, WHOLE_VIEW),
        )
        expect(gone).toStrictEqual({ messages: [], nextBefore: expect.any(Number) })
      }
      await db.delete(messages).run()
    })

    test('nodes are found by a part of their names and of their id', async () => {
      const { db } = open()
      const names: [string | null, string | null][] = [
        ['Häuschen am See', 'HAUS'],
        ['%_"hill"', '👍'],
        ['NUL\0byte', null],
        [null, null],
      ]
      for (const [index, [longName, shortName]] of names.entries()) {
        await db
          .insert(nodes)
          .values({ nodeNum: 0xa0cb0001 + index, longName, shortName, firstHeard: NOW })
          .run()
      }
      const findNodes = async (q: string) => {
        const found: { nodeNum: number }[] = JSON.parse(
          new TextDecoder().decode(
            (
              await listNodes(
                {
                  store: open(),
                  config: { SESSION_SECRET: ['a secret of this store, of 32 characters'] },
                  viewer: { permissions: ALL_PERMISSIONS, view: WHOLE_VIEW },
                  now: () => NOW,
                },
                { limit: 10, q },
              )
            ).body.bytes,
          ),
        )
        return found.map(({ nodeNum }) => nodeNum - 0xa0cb0000)
      }
      const expectAll = async () => {
        const parts = [
          'haus',
          'ÄUS',
          'äus',
          'am s',
          'HAUS\n',
          '%_',
          '"hi',
          '👍',
          'byte',
          '\0by',
          '!A0CB',
          'cb0004',
          '0',
        ]
        expect(await Promise.all(parts.map(findNodes))).toStrictEqual([
          [1],
          [],
          [1],
          [1],
          [],
          [2],
          [2],
          [2],
          [3],
          [3],
          [1, 2, 3, 4],
          [4],
          [1, 2, 3, 4],
        ])
      }
      await expectAll()
      await db
        .update(nodes)
        .set({ longName: 'elsewhere', nodeNum: 0xa0cb0009 })
        .where(sql`long_name is null`)
        .run()
      expect([await findNodes('cb0004'), await findNodes('elsew'), await findNodes('cb0009')]).toStrictEqual([
        [],
        [9],
        [9],
      ])
      await db
        .update(nodes)
        .set({ longName: null, nodeNum: 0xa0cb0004 })
        .where(sql`long_name = 'elsewhere'`)
        .run()
      await forget()
      await expectAll()
      await build()
      await expectAll()
      await isWhole('nodes')
      await db.delete(nodes).run()
    })

    test('entries of the audit log are found by a part of their details', async () => {
      const { db } = open()
      await db
        .insert(auditLog)
        .values([
          {
            timestamp: NOW,
            username: 'Änne',
            action: 'text_search',
            resource: 'auth',
            details: '{"a":"x"}',
            ip: '192.0.2.77',
          },
          {
            timestamp: NOW,
            username: null,
            action: 'text_search',
            resource: 'auth',
            details: '{"b":"100%"}',
            ip: null,
          },
        ])
        .run()
      const findEntries = async (q: string) => {
        const { entries } = await listAudit(open(), { q, action: 'text_search' }, { limit: 10 })
        return entries.map(({ details }) => Object.keys(details).join(''))
      }
      const expectAll = async () => {
        const parts = ['nne', 'änne', 'TEXT_S', '2.77', '"B":', '0%', 'auth', 'x"}\n192', '👍']
        expect(await Promise.all(parts.map(findEntries))).toStrictEqual([
          ['a'],
          [],
          ['b', 'a'],
          ['a'],
          ['b'],
          ['b'],
          [],
          [],
          [],
        ])
      }
      await expectAll()
      await forget()
      await expectAll()
      await build()
      await expectAll()
      await isWhole('audit_log')
    })
  })
}
