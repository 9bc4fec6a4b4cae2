import { createHash } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { ImportReport } from '../../../app/system/moving-in/report.ts'
import { backupsDirectory } from '../../backup/folder/directory.ts'
import { diskFiles } from '../../backup/folder/files.ts'
import type { Job } from '../job.ts'

const COLUMNS = [
  'id',
  'user_id',
  'username',
  'action',
  'resource',
  'details',
  'ip_address',
  'user_agent',
  'value_before',
  'value_after',
  'timestamp',
]

/**
 * Keeps the audit log of the file beside the backups, one entry a line, under a name made from its SHA-256. The same log
 * makes the same file.
 */
export function keepAuditLog({ source, writer, ctx }: Job): ImportReport['auditFile'] {
  if (source.count('audit_log') === 0) return null
  const directory = backupsDirectory(ctx.config.DATA_DIR)
  const hash = createHash('sha256')
  let entries = 0
  const draft = join(directory, '.meshmonitor-audit.draft')
  if (!writer.isDry) mkdirSync(directory, { recursive: true, mode: 0o700 })
  const fd = writer.isDry ? null : openSync(draft, 'w', 0o600)
  try {
    for (const row of source.rows('audit_log', COLUMNS, 'order by id')) {
      const line = `${JSON.stringify(row)}\n`
      hash.update(line)
      if (fd !== null) writeSync(fd, line)
      entries++
    }
    if (fd !== null) fsyncSync(fd)
  } finally {
    if (fd !== null) closeSync(fd)
  }
  const sha256 = hash.digest('hex')
  const name = `meshmonitor-audit-${sha256.slice(0, 16)}.jsonl`
  if (fd !== null) {
    if (existsSync(join(directory, name))) rmSync(draft)
    else renameSync(draft, join(directory, name))
    // The report names the file, so its name outlasts a loss of power, too.
    for (const folder of [directory, ctx.config.DATA_DIR]) diskFiles.sync(folder)
  }
  return { name, sha256, entries }
}
