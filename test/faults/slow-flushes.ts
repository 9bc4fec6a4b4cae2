import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

/**
 * Each flush of a process takes so long from now on, as on a memory card. `trace`: a file for the calls. `end` returns the
 * number of flushes.
 */
export async function slowFlushes(
  pid: number | undefined,
  flushMs: number,
  trace: string,
): Promise<{ end(): Promise<number> }> {
  const calls = 'fsync,fdatasync,sync_file_range,msync'
  const options = ['-f', '--seccomp-bpf', '-e', `trace=${calls}`, '-e', `inject=${calls}:delay_exit=${flushMs * 1000}`]
  const strace = spawn('/usr/bin/strace', [...options, '-o', trace, '-p', String(pid)])
  await once(strace.stderr, 'data')
  return {
    end: async () => {
      strace.kill('SIGINT')
      await once(strace, 'exit')
      return readFileSync(trace, 'utf8')
        .split('\n')
        .filter((line) => /sync/.test(line)).length
    },
  }
}
