/** Whether a secret may be sent to this URL: https, or http to this machine itself; without credentials. */
export function isSecureUrl(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { protocol, hostname, username, password } = new URL(value)
  const isLoopback = /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  return (protocol === 'https:' || (protocol === 'http:' && isLoopback)) && username === '' && password === ''
}

/**
 * Whether this is a valid tile address: a URL as above, or a path of this site, with {z}, {x} and {y} once each and {r}
 * at most once, none of them in the host.
 */
export function isTileUrl(value: string): boolean {
  const names = [...value.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name)
  const isComplete = names.toSorted().join('') === 'xyz' || names.toSorted().join('') === 'rxyz'
  const filled = value.replaceAll(/\{[xyzr]\}/g, '0')
  if (!isComplete || /[\s{}#\\]/.test(filled)) return false
  if (/^\/(?!\/)/.test(value)) return true
  // A host of other characters could end a source of the Content-Security-Policy.
  return isSecureUrl(filled) && /^https?:\/\/[a-zA-Z\d.:[\]-]+\//.test(value)
}

/** Scheme, host and port of the tile server; null if that is this site. */
export function tileOrigin(template: string): string | null {
  return template.startsWith('/') ? null : new URL(template.replaceAll(/[{}]/g, '')).origin
}

/**
 * Whether a collector may deliver to this URL, or a provider may be there: https, or http to this machine or a private
 * network, by address (RFC 1918, 4193) or by a name outside the public DNS; without credentials, query and fragment.
 */
export function isCollectorTarget(value: string): boolean {
  return isPrivateUrl(value) && !/[?#\s]/.test(value)
}

/** As `isSecureUrl`; http is also allowed on a private network. */
export function isPrivateUrl(value: string): boolean {
  if (isSecureUrl(value)) return true
  if (!URL.canParse(value)) return false
  const { protocol, hostname, username, password } = new URL(value)
  return protocol === 'http:' && PRIVATE_HOST.test(hostname) && username === '' && password === ''
}

const PRIVATE_HOST =
  /^(?:10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+|\[f[cd][\da-f]{2}:.*\]|[a-z][\w-]*|[\w.-]+\.(?:local|lan|internal|home\.arpa))$/

/**
 * Whether this is an origin in the form that browsers use: https, or http to this machine, and nothing after the host.
 */
export function isOrigin(value: string): boolean {
  // A host of other characters could end a source of the Content-Security-Policy.
  return isSecureUrl(value) && /^https?:\/\/[a-z\d.:[\]-]+$/.test(value) && new URL(value).origin === value
}

/** Whether a planet archive may be read from this URL: as `isCollectorTarget`, with {date} in its path at most once. */
export function isMapArchive(value: string): boolean {
  const filled = value.replace('{date}', '20260101')
  return isCollectorTarget(filled) && !/[{}\\]/.test(filled) && !/^https?:\/\/[^/]*\{/.test(value)
}
