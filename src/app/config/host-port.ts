/** `host`, `host:port`, `[v6]`, `[v6]:port`; null for other texts, also for a mere number and words such as `null`. */
export function parseHostPort(text: string): { host: string; port: number } | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]/]+))(?::(\d{1,5}))?$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3] ?? 4403)
  // Words that somebody may write for "none". As a host name they would be looked up forever.
  if (host === undefined || /^(?:-.*|\d+|null|none|undefined|true|false|off|no|yes)$/i.test(host)) return null
  return port < 1 || port > 65535 ? null : { host, port }
}
