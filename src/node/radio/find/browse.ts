import { isIPv4 } from 'node:net'
import type { ResponsePacket } from 'multicast-dns'
import type { Clock } from '../../clock.ts'
import { cleanName } from './clean-name.ts'

const SERVICE = '_meshtastic._tcp.local'
const SEARCH_MS = 3000
const ASK_AGAIN_MS = 1000
const MAX_RADIOS = 50
/** Names that were announced without an address, and were asked for it. */
const MAX_QUESTIONS = 50
/** Records that are read of one datagram: they are compared with each other. */
const MAX_RECORDS = 200

type Answer = NonNullable<ResponsePacket['answers']>[number]

export type MulticastOptions = {
  /** The own address in the only network to search; absent: all of them. */
  readonly interface?: string
  readonly port?: number
}

export type AnnouncedRadio = { readonly address: string; readonly name: string; readonly nodeId: string | null }

/** Radios in the local network that answer by multicast DNS. None if the system does not allow it. */
export async function browseRadios(clock: Clock, options: MulticastOptions): Promise<AnnouncedRadio[]> {
  const { default: createMulticast } = await import('multicast-dns')
  const found = new Map<string, AnnouncedRadio>()
  const asked = new Set<string>()
  return new Promise((resolve) => {
    // Bound to one address it would not hear what is sent to all.
    const multicast = createMulticast({ ...options, bind: '0.0.0.0' })
    const ask = () => multicast.query([{ name: SERVICE, type: 'PTR' }])
    const cancelQuestion = clock.after(ASK_AGAIN_MS, ask)
    const finish = () => {
      cancelQuestion()
      cancelEnd()
      multicast.destroy()
      resolve([...found.values()])
    }
    const cancelEnd = clock.after(SEARCH_MS, finish)
    multicast.on('error', finish)
    // A network without multicast, or noise.
    multicast.on('warning', () => {})
    multicast.on('response', (response, { address }) => {
      const records = [...(response.answers ?? []), ...(response.additionals ?? [])].slice(0, MAX_RECORDS)
      for (const radio of readRadios(records, address)) {
        if (found.size < MAX_RADIOS) found.set(radio.address, radio)
      }
      for (const name of namesWithoutAddress(records)) {
        if (asked.has(name) || asked.size >= MAX_QUESTIONS) continue
        asked.add(name)
        multicast.query([
          { name, type: 'SRV' },
          { name, type: 'TXT' },
        ])
      }
    })
    ask()
  })
}

/**
 * The radios in one response. All radios with WLAN call themselves `Meshtastic.local`, so the address is the one in the
 * same response, else the sender's.
 */
function readRadios(records: readonly Answer[], sender: string): AnnouncedRadio[] {
  return records.flatMap((record) => {
    if (record.type !== 'SRV' || !isInstance(record.name)) return []
    const { target, port } = record.data
    if (!Number.isInteger(port) || port < 1 || port > 65_535) return []
    const host = records.flatMap((each) => (each.type === 'A' && isSame(each.name, target) ? each.data : [])).at(0)
    const told = readTexts(records.filter((each) => isSame(each.name, record.name)))
    const id = told.get('id') ?? ''
    return {
      address: `${host !== undefined && isIPv4(host) ? host : sender}:${port}`,
      name: cleanName(told.get('shortname') ?? '') || cleanName(record.name.slice(0, -SERVICE.length - 1)) || target,
      nodeId: /^![0-9a-f]{8}$/.test(id) ? id : null,
    }
  })
}

function namesWithoutAddress(records: readonly Answer[]): string[] {
  const named = records.flatMap((record) => (record.type === 'SRV' ? record.name.toLowerCase() : []))
  return records.flatMap((record) =>
    record.type === 'PTR' && isSame(record.name, SERVICE) && !named.includes(record.data.toLowerCase())
      ? record.data
      : [],
  )
}

function isInstance(name: string): boolean {
  return name.toLowerCase().endsWith(`.${SERVICE}`)
}

function isSame(name: string, other: string): boolean {
  return name.toLowerCase() === other.toLowerCase()
}

/** `key=value` of TXT records; the first of several counts. */
function readTexts(records: readonly Answer[]): Map<string, string> {
  const texts = records.flatMap((record) => (record.type === 'TXT' ? [record.data].flat() : []))
  const pairs = texts.map((text) => /^([^=]{1,40})=(.*)$/s.exec(text.toString()))
  return new Map(
    pairs.toReversed().flatMap((pair) => (pair === null ? [] : [[(pair[1] ?? '').toLowerCase(), pair[2] ?? '']])),
  )
}
