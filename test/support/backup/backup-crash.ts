// A process that creates, deletes or restores a backup, and kills itself before the given step.
import { openBackups } from '../../../src/node/backup/backups.ts'
import { diskFiles, type Files } from '../../../src/node/backup/folder/files.ts'
import { restoreAtStart } from '../../../src/node/backup/restore/restore.ts'
import { writeSnapshot } from '../../../src/node/backup/snapshot.ts'
import { writeStage } from '../../../src/node/backup/restore/stage.ts'
import { performStaged } from '../../../src/node/backup/restore/staged.ts'
import { backupOptions, MADE_AT, MADE_NAME, restoreOptions, stageOf } from './backup.ts'

const [mode = '', dataDir = '', killAt = ''] = process.argv.slice(2)
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
  makeDirectory: before(diskFiles.makeDirectory),
  create: before(diskFiles.create),
  // Killed in the middle of a write, it leaves half of it.
  write: (fd, bytes) => {
    diskFiles.write(fd, bytes.subarray(0, bytes.length / 2))
    step()
    diskFiles.write(fd, bytes.subarray(bytes.length / 2))
  },
  finish: before(diskFiles.finish),
  close: before(diskFiles.close),
  sync: before(diskFiles.sync),
  rename: before(diskFiles.rename),
  duplicate: before(diskFiles.duplicate),
  remove: before(diskFiles.remove),
  removeLarge: before(diskFiles.removeLarge),
}

if (mode === 'restore') {
  await restoreAtStart(restoreOptions(dataDir, { files, onProgress: step }), MADE_NAME)
} else if (mode === 'stage') {
  writeStage(files, dataDir, stageOf(dataDir))
} else if (mode === 'staged') {
  writeStage(diskFiles, dataDir, stageOf(dataDir))
  await performStaged(restoreOptions(dataDir, { files, onProgress: step }), false)
} else {
  const backups = openBackups(
    backupOptions(dataDir, {
      files,
      now: () => MADE_AT + 5000,
      // A few tables: the others are written by the same steps.
      snapshot: async (job) => writeSnapshot({ ...job, tables: job.tables.slice(0, 3) }, files, step),
    }),
  )
  if (mode === 'backup') await backups.create('manual', async () => step())
  else await backups.remove(MADE_NAME, async () => step())
}
process.stdout.write(String(steps))
