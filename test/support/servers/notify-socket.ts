import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { endProcess } from './end-process.ts'

const SENDER = '/usr/bin/systemd-notify'

/** Prints each datagram as a line of JSON. Python closes the descriptor that comes with BARRIER=1, as systemd does. */
const RECEIVER = `
import json, socket, sys, time
name = sys.argv[1]
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind('\\0' + name[1:] if name[0] == '@' else name)
print('{}', flush=True)
while True:
    lines = receiver.recv(65536).decode().strip().split('\\n')
    print(json.dumps({'at': time.monotonic() * 1000, 'lines': lines}), flush=True)
`

export type Notified = { readonly at: number; readonly lines: readonly string[] }

/** What listens at NOTIFY_SOCKET, as systemd does: a path, or a name after `@`. */
export async function startNotifySocket(
  name: string,
): Promise<{ readonly received: readonly Notified[]; stop(): Promise<void> }> {
  if (!existsSync(SENDER)) throw new Error(`${SENDER} is missing and these tests need it: apt-get install -y systemd`)
  const child = spawn('python3', ['-c', RECEIVER, name], { stdio: ['ignore', 'pipe', 'inherit'] })
  const received: Notified[] = []
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  lines.on('line', (line) => {
    const { at, lines: said } = Object(JSON.parse(line))
    if (!said.includes('BARRIER=1')) received.push({ at, lines: said })
  })
  return { received, stop: () => endProcess(child, 'SIGKILL') }
}
