import { expect, test } from 'vitest'
import { createLog, LOG_FORMATS, type LogFormat, type LogLevel } from '../../../src/app/base/log.ts'

const AT = Date.UTC(2026, 0, 15, 12)

function written(format: LogFormat, run: (log: ReturnType<typeof createLog>) => void, level: LogLevel = 'debug') {
  const lines: string[] = []
  run(createLog({ level, format, now: () => AT, write: (line) => lines.push(line) }))
  return lines
}

const circular: Record<string, unknown> = {}
circular['self'] = circular
const ownCause = new Error('a cause of itself')
ownCause.cause = ownCause

const HOSTILE: [string, unknown][] = [
  ['a line break', 'a\nb\r\nc'],
  ['a terminal escape', '\u001b[2J\u009b2J\u0007'],
  ['line and paragraph separators', 'a\u2028b\u2029c\u0085d'],
  ['text that runs right to left', '\u061c\u202egnp.exe\u2066'],
  ['a NUL', '\u0000'],
  ['a lone surrogate', '\ud800'],
  ['a number that JSON lacks', [1n, Number.NaN]],
  ['a circle', circular],
  ['an error in an object', { error: new Error('inner') }],
  ['an error that is its own cause', ownCause],
  [
    'a value whose toJSON throws',
    {
      toJSON: () => {
        throw new Error('no')
      },
    },
  ],
  ['nothing', undefined],
  ['a function', () => 1],
  ['a fake entry', '"}\n{"level":"error","message":"fake"}'],
]

test.each(HOSTILE)('%s makes one printable line in either format', (_what, value) => {
  for (const format of LOG_FORMATS) {
    const lines = written(format, (log) => log.warn('Something happened', { value }))
    expect(lines).toHaveLength(1)
    // oxlint-disable-next-line no-control-regex -- they are what must not be there
    expect(lines[0]).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u061c\u2028-\u202e\u2066-\u2069]/)
    if (format === 'json') {
      expect(JSON.parse(String(lines[0]))).toMatchObject({
        time: '2026-01-15T12:00:00.000Z',
        level: 'warn',
        message: 'Something happened',
      })
    } else expect(lines[0]).toMatch(/^2026-01-15T12:00:00\.000Z WARN {2}Something happened value=/)
  }
})

test("fields do not overwrite the entry's own properties", () => {
  const said: object = { time: 0, level: 'CRITICAL', message: 'Signed in as admin' }
  const [line] = written('json', (log) => log.info('The radio says', { ...said, link: 'radio-1' }))
  expect(JSON.parse(String(line))).toStrictEqual({
    time: '2026-01-15T12:00:00.000Z',
    level: 'info',
    message: 'The radio says',
    link: 'radio-1',
  })
})

test('an error is logged with its stack and its causes', () => {
  const error = new TypeError('outer', { cause: new Error('inner') })
  const [line] = written('json', (log) => log.error('Failed', { error }))
  const { error: text } = JSON.parse(String(line))
  expect(text).toMatch(/^TypeError: outer\n {4}at .*\.ts[^]* <- Error: inner\n {4}at /)
})

test('the values bound to a failed query are not logged', () => {
  const error = Object.assign(new Error('Failed query: select ?\nparams: anna@example.org,$2b$12$hash'), {
    query: 'select ?',
    params: ['anna@example.org', '$2b$12$hash'],
  })
  for (const format of LOG_FORMATS) {
    const [line] = written(format, (log) => log.error('Failed', { error }))
    expect(line).toContain('select ?')
    expect(line).not.toMatch(/anna@|\$2b/)
  }
})

test('plain values stay plain in pretty lines', () => {
  const [line] = written('pretty', (log) => log.info('Listening', { host: '0.0.0.0', port: 8080, name: 'two words' }))
  expect(line).toBe('2026-01-15T12:00:00.000Z INFO  Listening host=0.0.0.0 port=8080 name="two words"')
})

test.each([
  ['debug', 4],
  ['info', 3],
  ['warn', 2],
  ['error', 1],
] as const)('at level %s %i of four entries are written', (level, count) => {
  const lines = written(
    'json',
    (log) => {
      log.debug('d')
      log.info('i')
      log.warn('w')
      log.error('e')
    },
    level,
  )
  expect(lines).toHaveLength(count)
})
