// node bench/decisions/search.ts: the cost of finding texts with each of the indexes that SQLite offers, at 1,000,000
// messages: bytes on disk, added cost of an insert, time of a search. docs/decisions/text-search.md has the figures.
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { matching } from '../../src/app/search/text-index.ts'
import { median } from '../table.ts'

const ROWS = Number(process.env['BENCH_SEARCH_ROWS'] ?? 1_000_000)
const INSERTS = 20_000

/** Every run generates the same texts. */
let seed = 1
function random(): number {
  seed = (seed * 48_271) % 2_147_483_647
  return seed / 2_147_483_647
}

/** The words of the documentation, with their frequencies. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const WORDS = globSync('{README.md,docs/**/*.md}', { cwd: ROOT })
  .toSorted()
  .flatMap((file) => readFileSync(join(ROOT, file), 'utf8').split(/[^\p{L}\d'.,:]+/u))
  .filter((word) => word !== '')

/** About as long as people's messages. */
function text(): string {
  const length = 3 + Math.floor(random() * 9)
  return Array.from({ length }, () => WORDS[Math.floor(WORDS.length * random())]).join(' ')
}

type Kind = { readonly name: string; readonly options: string; query(part: string): string }

const quoted = (part: string) => `"${part.replaceAll('"', '""')}"`

const KINDS: readonly Kind[] = [
  {
    name: 'unicode61, prefixes 2 3',
    options: "tokenize='unicode61', prefix='2 3'",
    query: (part) => `${quoted(part)} *`,
  },
  { name: 'trigram', options: "tokenize='trigram'", query: quoted },
  {
    name: 'trigram, no positions',
    options: "tokenize='trigram', detail=none, columnsize=0",
    query: (part) => matching(part) ?? '',
  },
]

const PARTS = {
  rare: 'relaytower',
  often: 'service',
  nowhere: 'xylophone',
  'common words, nowhere': 'nothing here at all',
}

function open(file: string, options: string | null): Database.Database {
  const database = new Database(file)
  database.pragma('journal_mode = WAL')
  database.exec('create table messages (id integer primary key, text text not null)')
  if (options !== null) {
    database.exec(`create virtual table found using fts5(text, content='', ${options});
      create trigger found_inserted after insert on messages begin
        insert into found (rowid, text) values (new.id, new.text);
      end`)
  }
  return database
}

function sizeOf(database: Database.Database): number {
  database.pragma('wal_checkpoint(TRUNCATE)')
  return Number(
    database.prepare('select page_count * page_size from pragma_page_count, pragma_page_size').pluck().get(),
  )
}

/** CPU time: milliseconds for `ROWS` rows in slices, and microseconds for each further row in transactions of 10. */
function fill(database: Database.Database): { bulkMs: number; insertUs: number } {
  seed = 7
  const insert = database.prepare('insert into messages (text) values (?)')
  const slice = database.transaction((rows: number, from: number) => {
    for (let row = 0; row < rows; row++)
      insert.run((from + row) % 100_000 === 77_777 ? `the relaytower is up ${text()}` : text())
  })
  const cpuMs = (run: () => void) => {
    const begun = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(begun)
    return (user + system) / 1000
  }
  const inSlices = (rows: number, each: number) => () => {
    for (let from = 0; from < rows; from += each) slice(each, from)
  }
  const bulkMs = cpuMs(inSlices(ROWS, 5000))
  return { bulkMs, insertUs: (cpuMs(inSlices(INSERTS, 10)) / INSERTS) * 1000 }
}

function search(database: Database.Database, { query }: Kind, part: string): string {
  const find = database
    .prepare<[string, string], number>(
      `select messages.id from found cross join messages on messages.id = found.rowid
        where found match ? and instr(lower(messages.text), lower(?)) > 0 order by found.rowid desc limit 101`,
    )
    .pluck()
  const times = Array.from({ length: 7 }, () => {
    const begun = performance.now()
    find.all(query(part), part)
    return performance.now() - begun
  })
  return `${median(times).toFixed(2)} ms (${find.all(query(part), part).length} found)`
}

const scratch = mkdtempSync(join(process.env['BENCH_DIR'] ?? tmpdir(), 'mesh-search-'))
try {
  const bare = open(join(scratch, 'bare.db'), null)
  const base = { ...fill(bare), bytes: sizeOf(bare) }
  const characters = Number(bare.prepare('select sum(length(text)) from messages').pluck().get())
  console.log(
    `${ROWS} messages, ${(characters / 1e6).toFixed(1)} MB of text, table ${(base.bytes / 1e6).toFixed(1)} MB, insert ${base.insertUs.toFixed(1)} µs`,
  )
  const scan = bare.prepare('select id from messages where instr(lower(text), lower(?)) > 0 order by id desc limit 101')
  for (const [name, part] of Object.entries(PARTS)) {
    const begun = performance.now()
    scan.all(part)
    console.log(`  no index, ${name}: ${(performance.now() - begun).toFixed(1)} ms`)
  }
  bare.close()
  for (const [index, kind] of KINDS.entries()) {
    const database = open(join(scratch, `${index}.db`), kind.options)
    const { bulkMs, insertUs } = fill(database)
    const bytes = sizeOf(database) - base.bytes
    console.log(
      `${kind.name}: index ${(bytes / 1e6).toFixed(1)} MB (${(bytes / characters).toFixed(2)} × text), fill +${((bulkMs - base.bulkMs) / 1000).toFixed(1)} s, insert +${(insertUs - base.insertUs).toFixed(1)} µs`,
    )
    for (const [name, part] of Object.entries(PARTS)) console.log(`  ${name}: ${search(database, kind, part)}`)
    database.close()
  }
} finally {
  rmSync(scratch, { recursive: true })
}
