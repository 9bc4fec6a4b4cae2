import { type Placeholder, sql, type SQL } from 'drizzle-orm'
import { messages } from '../../db/schema.ts'
import { BROADCAST } from '../../meshtastic/node-id.ts'
import { canReadChannel, canWriteChannel, type Scope } from '../../shared/access/scope.ts'

// Which parts of a row a viewer sees: decided only here, for SQL and for live events.

/** Where a message was sent: on a channel, or between two nodes. */
export type Place = { readonly channel: number; readonly isDirect: boolean }

export function placeOfMessage({ channel, to }: { readonly channel: number; readonly to: number }): Place {
  return { channel, isDirect: to !== BROADCAST }
}

export function canReadMessage(scope: Scope, { channel, isDirect }: Place): boolean {
  return isDirect ? scope.direct.read : canReadChannel(scope, channel)
}

export function canWriteMessage(scope: Scope, { channel, isDirect }: Place): boolean {
  return isDirect ? scope.direct.write : canWriteChannel(scope, channel)
}

/** Whether the scope includes all messages. */
export function seesAllMessages({ channels, direct }: Scope): boolean {
  return channels === 'all' && direct.read
}

/**
 * A key for what a scope permits to read: viewers with the same key see the same messages, positions and measurements.
 */
export function scopeKey({ channels, direct }: Scope): string {
  return `${channels === 'all' ? 'all' : channels.read.join('.')}${direct.read ? '+direct' : ''}`
}

/** The condition on `messages` for a prepared select that is run with `visibleValues`. */
export const visibleMessages: SQL = conditionOf({
  seesDirect: sql.placeholder('seesDirect'),
  seesAll: sql.placeholder('seesAll'),
  seenChannels: sql.placeholder('seenChannels'),
})

/** The same with its values. */
export function messagesSeenBy(scope: Scope): SQL {
  return conditionOf(visibleValues(scope))
}

function conditionOf(
  values: Readonly<Record<keyof ReturnType<typeof visibleValues>, Placeholder | string | number>>,
): SQL {
  return sql`case when ${messages.toNodeNum} <> ${sql.raw(String(BROADCAST))} then ${values.seesDirect}
    when ${values.seesAll} then 1
    else ${messages.channel} in (select value from json_each(${values.seenChannels})) end`
}

/** The values of `visibleMessages`. */
export function visibleValues({ channels, direct }: Scope) {
  return {
    seesDirect: direct.read ? 1 : 0,
    seesAll: channels === 'all' ? 1 : 0,
    seenChannels: JSON.stringify(channels === 'all' ? [] : channels.read),
  }
}
