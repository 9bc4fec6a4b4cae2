import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { readdir, readlink, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { vi } from 'vitest'
import { endProcess } from '../servers/end-process.ts'

const PROGRAM = '/usr/bin/socat'

/** A pseudo-terminal whose other end is a radio on loopback: to the service it is a serial port. */
export type SerialLine = {
  /** Its path, which stays the same. */
  readonly device: string
  /** Pulls the plug: the device is gone. */
  unplug(): Promise<void>
  plug(): Promise<void>
  /** Resolves when nobody has the device open any more. */
  untilClosed(): Promise<void>
  stop(): Promise<void>
}

/** A line to the radio on this port. Like a real one it goes on when its user closes it. */
export async function startSerialLine(port: number): Promise<SerialLine> {
  if (!existsSync(PROGRAM)) {
    throw new Error(`${PROGRAM} is missing and these tests need it: apt-get install -y socat`)
  }
  const dir = mkdtempSync(join(tmpdir(), 'mesh-serial-'))
  const device = join(dir, 'radio')
  let isPlugged = false
  let child: ChildProcess | null = null

  const start = async () => {
    const started = spawn(PROGRAM, ['-d', '-d', `PTY,link=${device},raw,echo=0,mode=600`, `TCP:127.0.0.1:${port}`], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child = started
    // It may end with its user, and ends with the connection of the radio.
    started.once('exit', () => {
      if (isPlugged) void start()
    })
    for await (const line of createInterface({ input: started.stderr })) {
      if (line.includes('starting data transfer loop')) break
    }
    started.stderr.resume()
  }
  const unplug = async () => {
    isPlugged = false
    if (child !== null) await endProcess(child, 'SIGTERM')
  }
  const plug = async () => {
    isPlugged = true
    await start()
  }
  await plug()
  return {
    device,
    plug,
    unplug,
    async untilClosed() {
      await vi.waitUntil(async () => !(await isOpenHere(device)), { timeout: 60_000 })
    },
    async stop() {
      await unplug()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Whether this process has the device open. */
async function isOpenHere(device: string): Promise<boolean> {
  const terminal = await realpath(device)
  const open = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  )
  return open.includes(terminal)
}
