/** Whether this is a URL to which a secret may be sent: https, or http to this very machine; without credentials. */
export function isSecureUrl(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { protocol, hostname, username, password } = new URL(value)
  const isLoopback = /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  return (protocol === 'https:' || (protocol === 'http:' && isLoopback)) && username === '' && password === ''
}

/**
 * Whether this is where tiles are, with {z}, {x} and {y} once each and {r} at most once, none of them in the host: a URL
 * as above, or a path of this site.
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

/** Scheme, host and port of the host that tiles come from; null when that is this site itself. */
export function tileOrigin(template: string): string | null {
  return template.startsWith('/') ? null : new URL(template.replaceAll(/[{}]/g, '')).origin
}
