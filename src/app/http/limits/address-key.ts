/** An IPv6 client owns a /64 at least, so its addresses count as one. */
export function addressKey(ip: string): string {
  if (!ip.includes(':')) return ip
  const [head = '', tail] = ip.split('%', 1).join('').toLowerCase().split('::')
  const groups = head.split(':').filter((group) => group !== '')
  const missing = tail === undefined ? 0 : 8 - groups.length - tail.split(':').filter((group) => group !== '').length
  const all = [...groups, ...Array.from({ length: Math.max(0, missing) }, () => '0'), ...(tail ?? '').split(':')]
  const network = all.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''))
  return `${network.join(':')}::/64`
}
