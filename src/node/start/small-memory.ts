/**
 * Runs this program again, as the same process, so that Node removes what is no longer used early instead of keeping
 * hundreds of megabytes of it: only a flag at its start can say so. Where a process cannot be replaced, as on Windows, it
 * goes on.
 */
export function keepMemorySmall(): void {
  const flag = '--optimize-for-size'
  if (process.execve === undefined || process.platform === 'win32' || process.execArgv.includes(flag)) return
  const { execPath, execArgv, argv, env } = process
  process.execve(execPath, [execPath, flag, ...execArgv, ...argv.slice(1)], env)
}
