import { isMessage, type JsonObject } from '@bufbuild/protobuf'
import { base64Encode } from '@bufbuild/protobuf/wire'
import type { SectionInput } from '../config/change.ts'
import type { RawSection } from '../config/sections.ts'
import { enumName } from '../enum-name.ts'
import {
  type Channel,
  Channel_Role,
  Channel_RoleSchema,
  ChannelSchema,
  type ChannelSettings,
} from '../gen/channel_pb.ts'

export const SLOT_CHANGES = ['added', 'replaced', 'changed', 'removed', 'kept', 'skipped'] as const

/** What an import does to one of the radio's slots. */
export type SlotChange = {
  /** Null: no slot, because the radio has this channel already. */
  readonly index: number | null
  readonly change: (typeof SLOT_CHANGES)[number]
  /** Of the channel afterwards, or of the removed one. Empty: the name of the modem preset. */
  readonly name: string
  /** Name of another channel that is in the slot before; null: none. */
  readonly former: string | null
  /** Whoever has the key of a channel with this name can administer radios that still allow it. */
  readonly isAdmin: boolean
  /** In bits: 0 none, 32 exact. */
  readonly positionPrecision: number
}

export type ChannelPlan =
  | { readonly ok: true; readonly input: SectionInput; readonly slots: readonly SlotChange[] }
  /** Fewer slots than channels. */
  | { readonly ok: false; readonly wanted: number; readonly free: number }

/**
 * Whether the key of a slot may be compared with another one. Any other key counts as different, because a comparison
 * would confirm a guess.
 */
export type MayCompare = (slot: number) => boolean

/** The channels of a radio in order of their slots; empty if it did not report them. */
export function channelsOf(sections: ReadonlyMap<string, RawSection>): readonly Channel[] {
  const parts = sections.get('channels')?.parts ?? []
  return parts.flatMap(({ message }) => (isMessage(message, ChannelSchema) ? [message] : []))
}

export function isUsed({ role }: Channel): boolean {
  return role !== Channel_Role.DISABLED
}

/** Takes all slots: the first channel becomes the primary one, and slots beyond the last one become free. */
export function planReplacing(
  present: readonly Channel[],
  wanted: readonly ChannelSettings[],
  mayCompare: MayCompare,
): ChannelPlan {
  if (wanted.length > present.length) return { ok: false, wanted: wanted.length, free: present.length }
  return merge(
    present.map((before, at) => {
      const settings = wanted[at]
      const role = at === 0 ? Channel_Role.PRIMARY : Channel_Role.SECONDARY
      return settings === undefined
        ? { before, role: Channel_Role.DISABLED, settings: null }
        : { before, role, settings }
    }),
    [],
    mayCompare,
  )
}

/** Takes free slots only. A channel with the name and key of one that the radio has is skipped. */
export function planAdding(
  present: readonly Channel[],
  wanted: readonly ChannelSettings[],
  mayCompare: MayCompare,
): ChannelPlan {
  const known = present.filter((channel) => isUsed(channel) && isComparable(channel, mayCompare))
  const same = known.flatMap(({ settings }) => settings ?? [])
  const fresh: ChannelSettings[] = []
  const skipped: SlotChange[] = []
  for (const settings of wanted) {
    if ([...same, ...fresh].some((other) => isSame(other, settings))) {
      skipped.push({ index: null, change: 'skipped', ...about(settings), former: null })
    } else fresh.push(settings)
  }
  const free = present.filter((channel) => !isUsed(channel))
  if (fresh.length > free.length) return { ok: false, wanted: fresh.length, free: free.length }
  const taken = fresh.flatMap((settings, at) => {
    const before = free[at]
    return before === undefined ? [] : [{ before, role: Channel_Role.SECONDARY, settings }]
  })
  return merge(taken, skipped, mayCompare)
}

/** Which of the keys that everybody knows a channel has, or that it has none, is shown to everybody. */
function isComparable({ index, settings }: Channel, mayCompare: MayCompare): boolean {
  return mayCompare(index) || (settings?.psk.length ?? 0) <= 1
}

function isSame(a: ChannelSettings, b: ChannelSettings): boolean {
  return a.name === b.name && base64Encode(a.psk) === base64Encode(b.psk)
}

function about(settings: ChannelSettings | undefined): Pick<SlotChange, 'name' | 'isAdmin' | 'positionPrecision'> {
  const name = settings?.name ?? ''
  return {
    name,
    isAdmin: name.toLowerCase() === 'admin',
    positionPrecision: settings?.moduleSettings?.positionPrecision ?? 0,
  }
}

type Slot = {
  readonly before: Channel
  readonly role: Channel_Role
  /** Null: none, the slot becomes free. */
  readonly settings: ChannelSettings | null
}

function merge(slots: readonly Slot[], skipped: readonly SlotChange[], mayCompare: MayCompare): ChannelPlan {
  const secrets: Record<string, string | null> = {}
  const channels: JsonObject[] = []
  for (const { before, role, settings } of slots) {
    const { index, settings: old } = before
    const key = base64Encode(settings?.psk ?? new Uint8Array(0))
    if (!isComparable(before, mayCompare) || key !== base64Encode(old?.psk ?? new Uint8Array(0))) {
      secrets[`channels.${index}.settings.psk`] = key === '' ? null : key
    }
    channels.push({ index, role: enumName(Channel_RoleSchema, role), settings: valuesOf(settings) })
  }
  return {
    ok: true,
    input: { values: { channels }, secrets },
    slots: [...slots.flatMap((slot) => describe(slot, isComparable(slot.before, mayCompare)) ?? []), ...skipped],
  }
}

function valuesOf(settings: ChannelSettings | null): JsonObject {
  return {
    name: settings?.name ?? '',
    uplinkEnabled: settings?.uplinkEnabled ?? false,
    downlinkEnabled: settings?.downlinkEnabled ?? false,
    moduleSettings: { positionPrecision: settings?.moduleSettings?.positionPrecision ?? 0 },
  }
}

/** Null for a slot that stays free. */
function describe({ before, role, settings }: Slot, mayBeSame: boolean): SlotChange | null {
  const { index } = before
  const former = isUsed(before) ? before.settings : undefined
  if (settings === null) {
    return isUsed(before) ? { index, change: 'removed', ...about(former), former: null } : null
  }
  if (!isUsed(before)) return { index, change: 'added', ...about(settings), former: null }
  if (former === undefined || !mayBeSame || !isSame(former, settings)) {
    return { index, change: 'replaced', ...about(settings), former: former?.name ?? '' }
  }
  const isKept = before.role === role && JSON.stringify(valuesOf(former)) === JSON.stringify(valuesOf(settings))
  return { index, change: isKept ? 'kept' : 'changed', ...about(settings), former: null }
}
