/**
 * Networks of IPv4 that are not the public internet, from the registry of special-purpose addresses (RFC 6890 and
 * later).
 */
const SPECIAL: readonly (readonly [network: string, bits: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
]

/** Whether an address is public; false for an invalid address. IPv6 without brackets. */
export function isPublicAddress(address: string): boolean {
  const v4 = parseV4(address)
  if (v4 !== null) return isPublicV4(v4)
  const groups = parseV6(address)
  if (groups === null) return false
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = groups
  const embedded = g * 65_536 + h
  const isStart = (...zero: readonly number[]) => zero.every((group) => group === 0)
  // IPv4-mapped, and NAT64 (RFC 6052), which contains an IPv4 address.
  if (isStart(a, b, c, d, e) && f === 0xffff) return isPublicV4(embedded)
  if (a === 0x64 && b === 0xff9b && isStart(c, d, e, f)) return isPublicV4(embedded)
  // Global unicast, without Teredo, ORCHID, benchmarks (2001::/23), documentation and 6to4.
  const isSpecial = (a === 0x2001 && (b < 0x200 || b === 0xdb8)) || a === 0x2002 || (a === 0x3fff && b < 0x1000)
  return a >= 0x2000 && a < 0x4000 && !isSpecial
}

function isPublicV4(address: number): boolean {
  return !SPECIAL.some(
    ([network, bits]) =>
      Math.floor(address / 2 ** (32 - bits)) === Math.floor((parseV4(network) ?? 0) / 2 ** (32 - bits)),
  )
}

function parseV4(text: string): number | null {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number)
  if (parts === undefined || parts.some((part) => part > 255)) return null
  return parts.reduce((sum, part) => sum * 256 + part, 0)
}

function parseV6(text: string): number[] | null {
  const [address = ''] = text.split('%')
  const tail = /(?<=:)\d+\.\d+\.\d+\.\d+$/.exec(address)
  const v4 = tail === null ? null : parseV4(tail[0])
  if (tail !== null && v4 === null) return null
  const plain =
    v4 === null ? address : `${address.slice(0, tail?.index)}${(v4 >>> 16).toString(16)}:${(v4 & 0xffff).toString(16)}`
  const halves = plain.split('::')
  if (halves.length > 2 || !/^[0-9a-f:]+$/i.test(plain)) return null
  const [first = [], last = []] = halves.map((half) => (half === '' ? [] : half.split(':')))
  const missing = 8 - first.length - last.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null
  const groups = [...first, ...Array<string>(missing).fill('0'), ...last]
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? groups.map((group) => Number.parseInt(group, 16))
    : null
}
