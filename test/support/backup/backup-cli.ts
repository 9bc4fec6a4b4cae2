// The backup commands as a program of their own.
import { runBackupCommand } from '../../../src/node/backup/cli.ts'

process.exitCode = await runBackupCommand(process.argv.slice(2), process.env)
