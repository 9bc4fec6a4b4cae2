// A process that copies the backups of a data directory, and kills itself before the given step.
import { parseConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { openCopies } from '../../../src/node/backup/copies/copies.ts'
import { encryptBackup } from '../../../src/node/backup/copies/encrypt.ts'
import { diskFiles, type Files } from '../../../src/node/backup/folder/files.ts'
import { openDatabase } from '../../../src/node/database.ts'
import type { Store } from '../../../src/db/store.ts'

const [dataDir = '', killAt = '', sessionSecret = '', partSize = '', now = ''] = process.argv.slice(2)
let steps = 0

function step(): void {
  if (++steps === Number(killAt)) process.kill(process.pid, 'SIGKILL')
}

const before =
  <A extends readonly unknown[], R>(work: (...args: A) => R) =>
  (...args: A): R => {
    step()
    return work(...args)
  }

const files: Files = {
  ...diskFiles,
  makeDirectory: before(diskFiles.makeDirectory),
  create: before(diskFiles.create),
  finish: before(diskFiles.finish),
  sync: before(diskFiles.sync),
  rename: before(diskFiles.rename),
  remove: before(diskFiles.remove),
}

const parsed = parseConfig({ SESSION_SECRET: sessionSecret, DATA_DIR: dataDir })
if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
const opened = openDatabase(`${dataDir}/mesh.db`)
const store: Store = { ...opened, atomic: before(opened.atomic) }
const copies = openCopies({
  store,
  config: parsed.config,
  log: createLog({ level: 'debug', format: 'json', now: Date.now, write: (line) => process.stderr.write(`${line}\n`) }),
  dataDir,
  timeZone: 'UTC',
  clock: { now: () => Number(now), after: () => () => {} },
  files,
  encrypt: (job) => encryptBackup(job, files),
  places: {
    wait: async () => {},
    // Each request asks for the address first.
    resolve: async () => {
      step()
      return [{ address: '127.0.0.1', family: 4 }]
    },
    multipartBytes: Number(partSize),
  },
  partSize: Number(partSize),
  mayRun: () => true,
})
await copies.round()
opened.close()
process.stdout.write(String(steps))
