import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { afterEach, describe, expect, it } from 'vitest'
import type { Connection } from '../../../src/node/radio/connection.ts'
import { connectSerial } from '../../../src/node/radio/transports/serial.ts'
import { RADIO_PROBLEMS } from '../../../src/shared/mesh/radio-problems.ts'
import { startRadioDevice } from '../../support/radio/device.ts'
import { startSerialLine } from '../../support/radio/serial-line.ts'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

async function startLine() {
  const device = await startRadioDevice()
  const line = await startSerialLine(device.port)
  endings.push(
    () => device.stop(),
    () => line.stop(),
  )
  return line
}

/** Opens it: what happens first, `open` or the arguments of `onClose`. */
function open(connect: ReturnType<typeof connectSerial>): Promise<{ first: unknown; connection: Connection }> {
  return new Promise((resolve) => {
    const tell = (first: unknown) => resolve({ first, connection })
    const connection = connect({ onOpen: () => tell('open'), onData() {}, onClose: (...told) => tell(told) })
    endings.push(() => connection.destroy())
  })
}

describe('a serial port', () => {
  it('has the rate of radios, and does not hang up when it is closed', async () => {
    const line = await startLine()
    const { first } = await open(connectSerial(line))
    expect(first).toBe('open')
    const settings = execFileSync('stty', ['-F', line.device, '-a'], { encoding: 'utf8' })
    expect(settings).toMatch(/speed 115200 baud/)
    expect(settings).toMatch(/(^|\s)-hupcl\b/)
  })

  it('is for one program at a time', async () => {
    const line = await startLine()
    const { connection } = await open(connectSerial(line))
    const second = connectSerial(line)
    expect((await open(second)).first).toStrictEqual([RADIO_PROBLEMS.in_use, 'in_use'])
    connection.destroy()
    await line.untilClosed()
    expect((await open(second)).first).toBe('open')
  })

  it('opens again while it is still being closed', async () => {
    const line = await startLine()
    const connect = connectSerial(line)
    for (let count = 0; count < 5; count += 1) {
      const { first, connection } = await open(connect)
      expect(first).toBe('open')
      connection.destroy()
    }
  })

  it.each([
    ['a folder', tmpdir(), 'no_serial_port'],
    ['a device that is no terminal', '/dev/null', 'no_serial_port'],
    ['a name below a file', `${import.meta.filename}/ttyUSB0`, 'no_device'],
  ] as const)('says what is wrong with %s', async (_name, device, problem) => {
    expect((await open(connectSerial({ device }))).first).toStrictEqual([RADIO_PROBLEMS[problem], problem])
  })
})
