import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { RADIO_PROBLEMS, type RadioProblem } from '../../../shared/mesh/radio-problems.ts'
import type { Connect } from '../connection.ts'
import { loadSerialPort, type SerialPort } from './serial-port.ts'
import { LINK_REASONS } from '../../../shared/mesh/link-reasons.ts'

/** The rate of every Meshtastic radio; radios on USB ignore it. */
const BAUD_RATE = 115_200

/** `device`: a path, best one below /dev/serial/by-id, which stays the same when devices are plugged in again. */
export type SerialTarget = { readonly device: string }

/** Opens the stream of a radio on a serial port. */
export function connectSerial({ device }: SerialTarget): Connect {
  // A port that is still being closed would count as used by another program.
  let closing: Promise<void> = Promise.resolve()
  return (events) => {
    let port: SerialPort | null = null
    let isOver = false
    const end = (problem: RadioProblem | null, reason: string = LINK_REASONS.unplugged) => {
      if (isOver) return
      isOver = true
      if (problem === null) events.onClose(reason)
      else events.onClose(RADIO_PROBLEMS[problem], problem)
    }
    const open = async () => {
      await closing
      const Port = isOver ? null : await loadSerialPort()
      if (Port === 'unsupported') return end('no_serial_support')
      const problem = await findProblem(device)
      if (problem !== null) return end(problem)
      if (isOver || Port === null) return
      // DTR and RTS stay as they are, even when the port is closed: they would restart many radios.
      const opened = new Port({ path: device, baudRate: BAUD_RATE, hupcl: false, autoOpen: false })
      port = opened
      opened.on('error', () => end(null))
      opened.on('close', () => end(null))
      opened.on('data', (bytes: Uint8Array) => {
        if (!isOver) events.onData(bytes)
      })
      closing = new Promise((resolve) => {
        opened.once('close', resolve)
        opened.open((error) => {
          if (error !== null) {
            resolve()
            end(...explainOpening(error))
          } else if (isOver) opened.close()
          else events.onOpen()
        })
      })
    }
    void open().catch((error: unknown) =>
      end(null, error instanceof Error ? error.message : 'the port cannot be opened'),
    )
    return {
      write(bytes) {
        if (!isOver && port?.isOpen === true) port.write(bytes)
      },
      destroy() {
        isOver = true
        // One that is just being opened is closed afterwards.
        if (port?.isOpen === true) port.close(() => {})
      },
    }
  }
}

/** What the operating system says before the port is opened; null: nothing against it. */
async function findProblem(device: string): Promise<RadioProblem | null> {
  try {
    await access(device, constants.R_OK | constants.W_OK)
    return null
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP' ? 'no_device' : 'no_permission'
  }
}

/** The library reports the words of the operating system, without their code. */
function explainOpening({ message }: Error): [RadioProblem | null, string?] {
  if (/lock port|busy|temporarily unavailable/i.test(message)) return ['in_use']
  if (/no such (?:file|device)/i.test(message)) return ['no_device']
  if (/permission denied|not permitted/i.test(message)) return ['no_permission']
  if (/inappropriate ioctl|is a directory|invalid argument/i.test(message)) return ['no_serial_port']
  return [null, `the serial port cannot be opened (${message})`]
}
