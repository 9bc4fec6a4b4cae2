/** `host`, `host:port`, `[v6]`, `[v6]:port`; null for other texts. */
export function parseHostPort(text: string): { host: string; port: number } | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]/]+))(?::(\d{1,5}))?$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3] ?? 4403)
  return host === undefined || port < 1 || port > 65535 ? null : { host, port }
}
