// npm run bench: what the service does against what this machine can do in the same run, in tables.
//
//   --json            the tables as JSON
//   --write           puts the tables of these parts into docs/performance.md, and eight rows of that page into README.md
//   --large           10,000,000 messages, 15,000,000 measurements, 1,000,000 entries of the audit log, 20,000 nodes
//   --scale <factor>  that, multiplied by a factor; 0.2 without --large
//   --data <folder>   keeps the seeded databases there for the next run
//   --only <names>    some of: requests lists every-list storage copies import packets card alerts findings survey start memory edge large
import { constants, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { seedLarge, seedSmall } from './seed.ts'
import { beginPart, checkMarks, printTables, reportFailure, writeTables } from './table.ts'
import { measureAlerts } from './measures/alerts.ts'
import { measureCopies } from './measures/copies.ts'
import { measureEdge } from './measures/edge/edge.ts'
import { measureEveryList } from './measures/every-list.ts'
import { measureFindings } from './measures/findings.ts'
import { measureChanging, measureIngest, measureLive } from './measures/packets.ts'
import { measureLists } from './measures/lists.ts'
import { measureMemory } from './measures/memory.ts'
import { measureMovingIn } from './measures/moving-in.ts'
import { measurePauses } from './measures/pauses.ts'
import { measureRequests } from './measures/requests.ts'
import { measureSizes, measureStart } from './measures/start.ts'
import { measureSlowCard } from './measures/slow-card.ts'
import { measureSurvey } from './measures/survey.ts'
import { FLAGS, SHIPPED } from './servers/processes.ts'
import { measureStorage } from './measures/storage.ts'

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    large: { type: 'boolean', default: false },
    scale: { type: 'string' },
    data: { type: 'string' },
    only: { type: 'string' },
  },
})
const scale = Number(values.scale ?? (values.large ? 1 : 0.2))
if (!(scale > 0 && scale <= 10))
  throw new Error(`--scale: found ${values.scale}, expected a number above 0 and up to 10`)

// Parts that run in this process do so with the flags of the service.
if (process.env['NODE_OPTIONS'] !== FLAGS) {
  if (process.execve === undefined) throw new Error('the bench needs a Node with process.execve')
  process.execve(process.execPath, [process.execPath, ...process.argv.slice(1)], {
    ...process.env,
    ...SHIPPED,
  })
}

const scratch = mkdtempSync(join(tmpdir(), 'mesh-bench-'))
const data = values.data ?? scratch

async function database(name: string, seed: (file: string) => Promise<void>): Promise<string> {
  const dataDir = join(data, name)
  mkdirSync(dataDir, { recursive: true })
  await seed(join(dataDir, 'mesh.db'))
  return dataDir
}
const small = () => database('small', seedSmall)
const large = () => database(`large-${scale}`, (file) => seedLarge(file, scale))

/** What a measurement changes, the next one would miss. */
function copyOf(dataDir: string): string {
  const copy = mkdtempSync(join(scratch, 'copy-'))
  cpSync(dataDir, copy, { recursive: true, mode: constants.COPYFILE_FICLONE })
  return copy
}

/** In this order: measures of processor time first, while no work of this run is still going on. */
const PARTS: Readonly<Record<string, () => Promise<void>>> = {
  requests: async () => measureRequests(await small()),
  lists: async () => measureLists(await small()),
  'every-list': async () => measureEveryList(await small()),
  storage: async () => measureStorage(scratch, await small()),
  copies: () => measureCopies(scratch),
  import: () => measureMovingIn(scratch, scale),
  packets: async () => {
    await measureIngest()
    await measureLive(scratch)
    await measureChanging(scratch)
  },
  card: () => measureSlowCard(scratch),
  alerts: measureAlerts,
  survey: () => measureSurvey(scratch, scale),
  findings: () => measureFindings(scale),
  start: async () => {
    await measureStart(await small())
    await measureStart(await large())
    measureSizes(scratch)
  },
  memory: async () => measureMemory(await small()),
  edge: measureEdge,
  large: async () => measurePauses(copyOf(await large())),
}

const wanted = values.only?.split(/[ ,]+/) ?? Object.keys(PARTS)
const unknown = wanted.filter((name) => !(name in PARTS))
if (unknown.length > 0)
  throw new Error(`--only: found ${unknown.join()}, expected some of ${Object.keys(PARTS).join()}`)
if (values.write) checkMarks(wanted)
try {
  for (const name of wanted) {
    beginPart(name)
    // A failing part does not stop the others.
    await PARTS[name]?.().catch((error: unknown) => reportFailure(name, error))
  }
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
const missed = printTables(values.json)
if (values.write) writeTables(scale)
// Processes left by a failed part end with this process.
process.exit(missed === 0 ? 0 : 1)
