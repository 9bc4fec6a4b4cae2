import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

const FLUSHES = 'fsync,fdatasync,sync_file_range,msync'

/** What ends a trace: `end` returns its lines. */
type Trace = { end(): Promise<string[]> }

/**
 * Each flush of a process takes so long from now on, as on a memory card. `trace`: a file for the calls. `end` returns the
 * number of flushes, `ofMain` of its main thread.
 */
export async function slowFlushes(
  pid: number | undefined,
  flushMs: number,
  trace: string,
): Promise<{ end(): Promise<number>; ofMain(): number }> {
  let lines: string[] = []
  const options = ['-e', `trace=${FLUSHES}`, '-e', `inject=${FLUSHES}:delay_exit=${flushMs * 1000}`]
  const tracing = await traceCalls(pid, options, trace)
  return {
    end: async () => {
      lines = (await tracing.end()).filter((line) => /sync/.test(line))
      return lines.length
    },
    ofMain: () => lines.filter((line) => line.startsWith(`${pid} `)).length,
  }
}

/** Each flush of a process fails from now on. */
export function refusedFlushes(pid: number | undefined, trace: string): Promise<Trace> {
  return traceCalls(pid, ['-e', `trace=${FLUSHES}`, '-e', `inject=${FLUSHES}:error=EIO`], trace)
}

/** Notes the flushes of a process, and what it writes, in the order in which the calls end. */
export function flushesAndWrites(pid: number | undefined, trace: string): Promise<Trace> {
  return traceCalls(pid, ['-s', '40', '-e', `trace=${FLUSHES},write,writev,sendto,sendmsg`], trace)
}

async function traceCalls(pid: number | undefined, options: readonly string[], trace: string): Promise<Trace> {
  const strace = spawn('/usr/bin/strace', ['-f', ...options, '-o', trace, '-p', String(pid)])
  // Its warnings come before it has attached.
  let said = ''
  while (!said.includes('attached')) said += String((await once(strace.stderr, 'data'))[0])
  return {
    end: async () => {
      strace.kill('SIGINT')
      await once(strace, 'exit')
      return readFileSync(trace, 'utf8').split('\n')
    },
  }
}
