// The backup commands as a separate program.
import { runBackupCommand } from '../../../src/node/backup/cli.ts'

process.exitCode = await runBackupCommand(process.argv.slice(2), process.env)
