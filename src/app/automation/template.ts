import { countTextBytes } from '../../meshtastic/to-radio.ts'

/** Tokens of every text: what they stand for, and the widest that they are filled with. */
export const TOKENS = {
  longName: { meaning: 'Long name of the radio', widest: 'm'.repeat(39) },
  shortName: { meaning: 'Short name of the radio', widest: 'mmmm' },
  nodeId: { meaning: 'Id of the radio', widest: '!00000000' },
  nodes: { meaning: 'Known nodes', widest: '99999' },
  active: { meaning: 'Nodes heard lately, by the setting nodeActiveSeconds', widest: '99999' },
  date: { meaning: 'Date in the time zone of the rule', widest: '2026-01-31' },
  time: { meaning: 'Time of day in the time zone of the rule', widest: '23:59' },
  version: { meaning: "Version of the radio's firmware", widest: 'm'.repeat(20) },
} as const satisfies Record<string, Token>

/** Tokens of an answer besides those of every text. */
export const ANSWER_TOKENS = {
  senderLongName: { meaning: 'Long name of who is answered', widest: 'm'.repeat(39) },
  senderShortName: { meaning: 'Short name of who is answered', widest: 'mmmm' },
  senderId: { meaning: 'Id of who is answered', widest: '!00000000' },
  hops: { meaning: 'Hops that the message came by', widest: '7' },
  snr: { meaning: 'dB of its last transmitter', widest: '-99.99' },
  rssi: { meaning: 'dBm of its last transmitter', widest: '-999' },
} as const satisfies Record<string, Token>

type Token = { readonly meaning: string; readonly widest: string }

/** What is filled in for a value that is not known. */
const UNKNOWN = '?'

export type TokenName = keyof typeof TOKENS | keyof typeof ANSWER_TOKENS
/** Values by token; null: not known. */
export type TokenValues = { readonly [Name in TokenName]?: string | number | null }

const TOKEN = /\{([A-Za-z]+)\}/g
const ALL: Readonly<Record<string, Token>> = { ...TOKENS, ...ANSWER_TOKENS }

/** The tokens of a text that there are not, as they are written. */
export function unknownTokens(template: string, isAnswer: boolean): string[] {
  const known: object = isAnswer ? ALL : TOKENS
  const all = Array.from(template.matchAll(TOKEN))
  const unknown = all.flatMap(([written, name = '']) => (Object.hasOwn(known, name) ? [] : [written]))
  return [...new Set(unknown)]
}

/** The text with the widest values that are to be expected. */
export function widestText(template: string): string {
  return template.replace(TOKEN, (written, name: string) => (Object.hasOwn(ALL, name) ? widthOf(name) : written))
}

function widthOf(name: string): string {
  return ALL[name]?.widest ?? ''
}

/** The text that is sent. No value is wider than the widest that is to be expected: longer names are cut. */
export function render(template: string, values: TokenValues): string {
  const known = new Map(Object.entries(values))
  return template.replace(TOKEN, (written, name: string) => {
    if (!Object.hasOwn(ALL, name)) return written
    const value = known.get(name) ?? UNKNOWN
    return fit(String(value), countTextBytes(widthOf(name)))
  })
}

/** Without control characters, and cut after whole characters at so many bytes. */
function fit(value: string, maxBytes: number): string {
  let fitted = ''
  let bytes = 0
  for (const character of value.toWellFormed().replaceAll(/\p{Cc}/gu, '')) {
    bytes += countTextBytes(character)
    if (bytes > maxBytes) break
    fitted += character
  }
  return fitted === '' ? UNKNOWN : fitted
}
