import { createReadStream } from 'node:fs'

/** The lines of a UTF-8 file. `readline` also ends a line at U+2028, which JSON may contain. */
export async function* splitLines(file: string): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of createReadStream(file, 'utf8')) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  yield rest
}

/** The value of a line; undefined: it is not JSON. */
export function parseLine(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
