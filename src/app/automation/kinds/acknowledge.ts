import * as z from 'zod'
import { countTextBytes } from '../../../meshtastic/link/to-radio.ts'
import { BROADCAST, formatNodeId } from '../../../meshtastic/node-id.ts'
import { MATCH_MODES } from '../../../shared/automation/rules.ts'
import { ALL_TOKEN_NAMES } from '../../../shared/automation/tokens.ts'
import { readTokens } from '../facts.ts'
import { render } from '../template.ts'
import { channelsSchema, common, printable, templateSchema } from './fields.ts'
import { heardKind } from './kind.ts'
import { matches } from './matcher.ts'
import { MAX_REACTION } from '../../../shared/limits.ts'

export const matchSchema = z.strictObject({
  mode: z
    .enum(MATCH_MODES)
    .default('word')
    .describe('word: occurs as a whole word in the text; wildcard: matches the whole text, * any characters, ? one'),
  words: z
    .array(printable(64).refine((word) => word.trim() !== '', 'not empty'))
    .min(1)
    .max(20)
    .describe('One of them is enough; case does not matter'),
})

const answerSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('tapback'),
    emoji: printable(MAX_REACTION).refine((emoji) => emoji.trim() !== '' && countTextBytes(emoji) <= 32, 'one emoji'),
  }),
  z.strictObject({
    kind: z.literal('text'),
    text: templateSchema,
    direct: z
      .boolean()
      .default(false)
      .describe('Answer messages on a channel by direct message; a direct message is always answered directly'),
  }),
])

const acknowledgeSchema = z
  .strictObject({
    kind: z.literal('acknowledge'),
    ...common,
    match: matchSchema,
    channels: channelsSchema.default([]),
    direct: z.boolean().default(false).describe('Direct messages to the radio'),
    answer: answerSchema,
  })
  .meta({ id: 'AcknowledgeRule', description: 'Answers certain words' })

/** Answers messages that contain certain words. */
export const acknowledge = heardKind(acknowledgeSchema, {
  tokens: ALL_TOKEN_NAMES,
  textOf: ({ answer }) => (answer.kind === 'text' ? { path: ['answer', 'text'], text: answer.text } : null),
  problemsOf: ({ channels, direct }) =>
    channels.length === 0 && !direct
      ? [{ path: ['channels'], message: 'at least one channel, or direct messages' }]
      : [],
  listensTo(rule, said) {
    const isHeard = said.isDirect ? rule.direct : rule.channels.includes(said.channel)
    return isHeard && matches(rule.match, said.text)
  },
  async answer(needs, rule, { said, speaker, signal, now, radio }) {
    const { answer } = rule
    const replyId = signal.packetId === 0 ? null : signal.packetId
    const isToSender = said.isDirect || (answer.kind === 'text' && answer.direct)
    const way = { to: isToSender ? said.from : BROADCAST, channel: said.channel, replyId, radio }
    if (answer.kind === 'tapback') return { kind: 'tapback', text: answer.emoji, ...way }
    const values = {
      ...(await readTokens(needs, rule, now, radio)),
      senderLongName: speaker.longName ?? formatNodeId(said.from),
      senderShortName: speaker.shortName,
      senderId: formatNodeId(said.from),
      hops: signal.hopsAway,
      snr: signal.snr,
      rssi: signal.rssi,
    }
    return { kind: 'text', text: render(answer.text, values), ...way }
  },
})
