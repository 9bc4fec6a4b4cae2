const MAX_LENGTH = 1024

/** Signing in again right after a sign-in would loop forever. */
const OWN_ROUTES = '/api/auth/oidc/'

/**
 * The page after a sign-in: a path of this site with its query and fragment, or null for anything else. Encoded forms
 * are checked in their decoded form, because a proxy or the page may decode once more.
 */
export function sitePath(wanted: string | undefined): string | null {
  if (wanted === undefined || wanted.length > MAX_LENGTH) return null
  for (let form = wanted, depth = 0; depth < 5; depth++) {
    if (!isSitePath(form)) return null
    const decoded = decode(form)
    if (decoded === form) break
    form = decoded
  }
  const { pathname, search, hash } = new URL(wanted, 'http://site.invalid')
  const path = `${pathname}${search}${hash}`
  // Encoding may have turned each character into nine, and a cookie has 4 KB.
  return path.length > MAX_LENGTH ? null : path
}

function isSitePath(form: string): boolean {
  if (!form.startsWith('/') || !form.isWellFormed() || /[\p{Cc}\\]/u.test(form)) return false
  if (!URL.canParse(form, 'http://site.invalid')) return false
  const { origin, pathname } = new URL(form, 'http://site.invalid')
  return origin === 'http://site.invalid' && !pathname.startsWith('//') && !pathname.startsWith(OWN_ROUTES)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
