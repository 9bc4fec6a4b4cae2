import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { base64Decode, base64Encode } from '@bufbuild/protobuf/wire'
import type { ChannelSettings } from '../gen/channel_pb.ts'
import { type ChannelSet, ChannelSetSchema } from '../gen/channel_set_pb.ts'
import type { Config_LoRaConfig } from '../gen/config_pb.ts'

/** Channels as clients of Meshtastic share them, keys included. */
export type SharedChannels = {
  /** One to eight. The first one is the primary channel, unless `isAddOnly`. */
  readonly channels: readonly ChannelSettings[]
  readonly lora: Config_LoRaConfig | null
  /** They are meant to be added to other channels, not to replace them. LoRa settings then do not count. */
  readonly isAddOnly: boolean
}

export const MAX_CHANNELS = 8
const MAX_NAME_BYTES = 11
const KEY_SIZES: ReadonlySet<number> = new Set([0, 1, 16, 32])

export type UrlProblem =
  | { readonly kind: 'not_a_url' | 'other_site' | 'other_kind' | 'no_content' | 'unreadable' | 'no_channels' }
  | { readonly kind: 'too_many_channels'; readonly count: number }
  /** `channel`: counted from 1. */
  | { readonly kind: 'key_size'; readonly channel: number; readonly bytes: number }
  | { readonly kind: 'long_name'; readonly channel: number }

export type UrlRead =
  | { readonly ok: true; readonly shared: SharedChannels }
  | { readonly ok: false; readonly problem: UrlProblem }

/** Base64 is url-safe and without padding. An URL that adds carries no LoRa settings. */
export function encodeChannelUrl({ channels, lora, isAddOnly }: SharedChannels): string {
  const set = create(ChannelSetSchema, { settings: [...channels] })
  if (lora !== null && !isAddOnly) set.loraConfig = lora
  return `https://meshtastic.org/e/${isAddOnly ? '?add=true' : ''}#${base64Encode(toBinary(ChannelSetSchema, set), 'url')}`
}

const refuse = (problem: UrlProblem): UrlRead => ({ ok: false, problem })

/** What clients accept: with or without `www.`, any case, other steps before `e`, and `add` before or after the `#`. */
export function parseChannelUrl(text: string): UrlRead {
  const url = /^(?:https?:\/\/)?([^/?#\s]+)(\/[^?#\s]*)?(\?[^#\s]*)?(?:#(\S*))?$/i.exec(text.trim())
  const [, host = '', path = '', query = '', fragment = ''] = url ?? []
  if (!host.includes('.')) return refuse({ kind: 'not_a_url' })
  if (!/^(?:www\.)?meshtastic\.org(?::443)?$/i.test(host)) return refuse({ kind: 'other_site' })
  if (!path.split('/').some((step) => step.toLowerCase() === 'e')) return refuse({ kind: 'other_kind' })
  const [content = '', ...after] = fragment.split('?')
  if (content === '') return refuse({ kind: 'no_content' })
  const set = decode(content)
  if (set === null) return refuse({ kind: 'unreadable' })
  const problem = findProblem(set)
  if (problem !== null) return refuse(problem)
  const isAddOnly = after.length > 0 ? saysAdd(after.join('?')) : saysAdd(query.slice(1))
  return { ok: true, shared: { channels: set.settings, lora: isAddOnly ? null : (set.loraConfig ?? null), isAddOnly } }
}

function saysAdd(query: string): boolean {
  return query.split('&').some((part) => /^add(?:=true)?$/i.test(part))
}

function decode(content: string): ChannelSet | null {
  // Messengers encode the padding of clients that keep it.
  const base64 = content.replaceAll(/%3d/gi, '=').replace(/=+$/, '')
  if (!/^[\w+/-]+$/.test(base64)) return null
  try {
    return fromBinary(ChannelSetSchema, base64Decode(base64))
  } catch {
    return null
  }
}

function findProblem({ settings }: ChannelSet): UrlProblem | null {
  if (settings.length === 0) return { kind: 'no_channels' }
  if (settings.length > MAX_CHANNELS) return { kind: 'too_many_channels', count: settings.length }
  for (const [at, { psk, name }] of settings.entries()) {
    if (!KEY_SIZES.has(psk.length)) return { kind: 'key_size', channel: at + 1, bytes: psk.length }
    const bytes = new TextEncoder().encode(name).length
    if (bytes > MAX_NAME_BYTES || name.includes('\0')) return { kind: 'long_name', channel: at + 1 }
  }
  return null
}
