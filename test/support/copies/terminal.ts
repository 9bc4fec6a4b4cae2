import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { programEnv } from '../built/built-service.ts'

/**
 * Runs a command on a terminal of its own, and types each answer once its question stands there. `out` is what the user
 * sees.
 */
export async function onTerminal(
  command: readonly string[],
  env: Record<string, string>,
  answers: readonly (readonly [question: string, answer: string])[],
): Promise<{ code: number; out: string }> {
  const line = command.map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    env: { ...programEnv(), ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const left = [...answers]
  let out = ''
  let seen = 0
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString('utf8')
    const [question, answer] = left[0] ?? []
    if (question === undefined || !out.includes(question, seen)) return
    seen = out.length
    left.shift()
    child.stdin.write(`${answer}\n`)
  })
  const [code] = await once(child, 'close')
  return { code: Number(code), out }
}
