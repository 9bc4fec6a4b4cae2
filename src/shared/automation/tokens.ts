import { isNameOf, namesOf } from '../names.ts'

type Token = { readonly meaning: string; readonly widest: string }

/** Tokens of every text, with their meaning and the widest value that they can get. */
export const TOKENS = {
  longName: { meaning: 'Long name of the radio', widest: 'm'.repeat(39) },
  shortName: { meaning: 'Short name of the radio', widest: 'mmmm' },
  nodeId: { meaning: 'ID of the radio', widest: '!00000000' },
  nodes: { meaning: 'Known nodes', widest: '99999' },
  active: { meaning: 'Nodes heard in the last nodeActiveSeconds', widest: '99999' },
  date: { meaning: 'Date in the time zone of the rule', widest: '2026-01-31' },
  time: { meaning: 'Time of day in the time zone of the rule', widest: '23:59' },
  version: { meaning: "Version of the radio's firmware", widest: 'm'.repeat(20) },
} as const satisfies Record<string, Token>

/** Tokens of answers, in addition to those of every text. */
export const ANSWER_TOKENS = {
  senderLongName: { meaning: 'Long name of the sender of the answered message', widest: 'm'.repeat(39) },
  senderShortName: { meaning: 'Short name of the sender of the answered message', widest: 'mmmm' },
  senderId: { meaning: 'ID of the sender of the answered message', widest: '!00000000' },
  hops: { meaning: 'Hops the message took', widest: '7' },
  snr: { meaning: 'dB of its last transmitter', widest: '-99.99' },
  rssi: { meaning: 'dBm of its last transmitter', widest: '-999' },
} as const satisfies Record<string, Token>

export type TokenName = keyof typeof TOKENS | keyof typeof ANSWER_TOKENS

const ALL = { ...TOKENS, ...ANSWER_TOKENS }
export const TOKEN_NAMES = namesOf(TOKENS)
export const ALL_TOKEN_NAMES = namesOf(ALL)

/** A token as it is written, with its name. */
export const TOKEN = /\{([A-Za-z]+)\}/g

/** The widest expected value of a token; null: there is no such token. */
export function widestOf(name: string): string | null {
  return isNameOf(ALL, name) ? ALL[name].widest : null
}

/** The text with the widest expected values. */
export function widestText(template: string): string {
  return template.replace(TOKEN, (written, name: string) => widestOf(name) ?? written)
}
