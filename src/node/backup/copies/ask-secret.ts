import { openSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { ReadStream } from 'node:tty'

/**
 * Asks a question on the terminal of this process, wherever its input and output lead, without showing what is typed.
 * Null: there is no terminal, or the user does not answer.
 */
export async function askSecret(question: string): Promise<string | null> {
  let terminal: number
  try {
    terminal = openSync('/dev/tty', 'r+')
  } catch {
    return null
  }
  const input = new ReadStream(terminal)
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output: hidden, terminal: true })
  process.stderr.write(question)
  try {
    return await new Promise<string | null>((resolve) => {
      lines.on('line', resolve)
      lines.on('SIGINT', () => resolve(null))
      lines.on('close', () => resolve(null))
    })
  } finally {
    lines.close()
    input.destroy()
    process.stderr.write('\n')
  }
}
