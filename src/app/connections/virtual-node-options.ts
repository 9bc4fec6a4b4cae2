import * as z from 'zod'
import { MAX_NETWORKS } from '../../shared/limits.ts'

const address = z.union([z.ipv4(), z.ipv6()])

/** In its one canonical spelling, IPv6 in brackets; null: not an address. */
function canonical(host: string): string | null {
  const url = `http://${host.includes(':') ? `[${host}]` : host}`
  return URL.canParse(url) ? new URL(url).hostname : null
}

/** Whether this stands for every address of the machine, in any spelling. */
export function isEverywhere(host: string): boolean {
  return ['0.0.0.0', '[::]', '[::ffff:0:0]', null].includes(canonical(host))
}

/** Whether this is an IPv4 address that is written as an IPv6 one. */
export function isMapped(host: string): boolean {
  return /^\[::ffff:[\da-f]+:[\da-f]+\]$/.test(canonical(host) ?? '')
}

/** A port where Meshtastic apps connect as to the radio. The protocol has no login: who reaches the port, has its view. */
export const virtualNodeOptions = z
  .strictObject({
    port: z.int().min(1).max(65_535).describe('TCP port; Meshtastic apps expect 4403'),
    host: address
      .refine((host) => !isMapped(host), 'an IPv4 address is written as such')
      .default('127.0.0.1')
      .describe('Address of this machine to listen on'),
    allowedNetworks: z
      .array(z.union([address, z.cidrv4(), z.cidrv6()]))
      .max(MAX_NETWORKS)
      .default([])
      .describe('Addresses and networks (CIDR) that may connect; empty: any that reaches `host`'),
    userId: z
      .int()
      .min(1)
      .nullable()
      .describe(
        'The user whose channels, nodes and direct messages apps see, and as whom they send; null: public access',
      ),
    mayConfigure: z.boolean().default(false).describe("Apps may change the radio's settings"),
    mayReboot: z.boolean().default(false).describe('Apps may restart the radio and shut it down'),
    sharesChannelKeys: z
      .boolean()
      .default(false)
      .describe('Apps get the keys of the channels that the user sees; the private key never leaves'),
    proxiesMqtt: z
      .boolean()
      .default(false)
      .describe('One app carries the packets between the radio and its MQTT broker'),
  })
  .refine(({ host, allowedNetworks }) => !isEverywhere(host) || allowedNetworks.length > 0, {
    path: ['allowedNetworks'],
    message: 'name the networks that may connect',
  })
  .meta({ id: 'VirtualNodeOptions', description: 'A port where Meshtastic apps connect as to the radio' })

export type VirtualNodeOptions = z.output<typeof virtualNodeOptions>
