#!/usr/bin/env node
// A shell for `npm run --script-shell` that knows no more than cmd.exe, PowerShell and sh have in common: programs with
// arguments, double quotes, and `&&`. Refuses everything else.
import { spawnSync } from 'node:child_process'

const [, , , line = ''] = process.argv
for (const command of line.split(' && ')) {
  const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare)
  const odd = words.find((word) => /['$`;|<>*?(){}&^%\\]/.test(word))
  const [program, ...args] = words
  if (odd !== undefined || program === undefined || /^(?:exec|export|set|source)$|=/.test(program)) {
    console.error(`not in every shell: ${odd ?? program ?? 'nothing'}`)
    process.exit(126)
  }
  if (process.env.PLAIN_SHELL_READS_ONLY === 'true') continue
  const { status, signal, error } = spawnSync(program, args, { stdio: 'inherit' })
  if (error !== undefined) throw error
  if (status !== 0) process.exit(status ?? (signal === null ? 1 : 128))
}
