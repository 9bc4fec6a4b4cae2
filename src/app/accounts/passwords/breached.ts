import type { Ctx } from '../../base/context.ts'
import { askWithin } from '../../base/ask-within.ts'

/** Setting a password waits no longer than this for the answer. */
const TIMEOUT_MS = 3000

/**
 * Whether a password is known from breaches. Looks up the first five digits of its SHA-1; the service at
 * BREACHED_PASSWORDS_URL learns nothing else. False if no such service is configured, or if its answer is missing or
 * invalid.
 */
export async function isBreached({ config, log }: Pick<Ctx, 'config' | 'log'>, password: string): Promise<boolean> {
  const url = config.BREACHED_PASSWORDS_URL
  if (url === null) return false
  const hash = await sha1(password)
  const [prefix, suffix] = [hash.slice(0, 5), hash.slice(5)]
  // Padding hides the number of results in the length of the answer; padded lines have the count 0.
  const headers = { accept: 'text/plain', 'add-padding': 'true', 'user-agent': 'mesh-monitoring-service' }
  const answer = await askWithin(TIMEOUT_MS)(`${url}/${prefix}`, { headers }, TIMEOUT_MS)
  if (answer.kind === 'none' || answer.status !== 200) {
    const why = answer.kind === 'none' ? answer.why : `status ${answer.status}`
    log.warn('A new password was not checked for breaches: the service does not answer', { why })
    return false
  }
  const line = new RegExp(`^${suffix}:0*[1-9]\\d*\\s*$`, 'im')
  return line.test(answer.text)
}

async function sha1(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .toUpperCase()
}
