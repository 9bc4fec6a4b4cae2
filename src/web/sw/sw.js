// The service worker: shows alerts that are pushed, and keeps the files of the application, so that it opens at once and
// while the service is away. Of the API it keeps nothing at all.
const SHELL = './'
const OFFLINE_PAGE = 'offline.html'
// The build names what the page needs at first, under the hashes of its contents.
const FIRST = ['%FIRST%']
// A service under another path of this host has caches in the same place.
const { pathname } = new URL(self.registration.scope)
const OWN = pathname === '/' ? 'files-' : `${pathname} files-`
// Another build, another cache: its files belong together.
const CACHE = OWN + FIRST.join(' ')
/** A network that answers nothing for so long is taken for none. */
const PATIENCE_MS = 8000

self.addEventListener('install', (event) => {
  const keep = async () => {
    const cache = await caches.open(CACHE)
    await cache.addAll([...FIRST, ...[SHELL, OFFLINE_PAGE].map((name) => new Request(name, { cache: 'reload' }))])
    await self.skipWaiting()
  }
  event.waitUntil(keep())
})

self.addEventListener('activate', (event) => {
  const begin = async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith(OWN) && name !== CACHE) await caches.delete(name)
    }
    await self.clients.claim()
  }
  event.waitUntil(begin())
})

self.addEventListener('fetch', (event) => {
  const { request } = event
  const { scope } = self.registration
  if (request.method !== 'GET' || !request.url.startsWith(scope)) return
  const path = request.url.slice(scope.length)
  if (request.mode === 'navigate') {
    // Downloads and the ways to a sign-in provider are the service's own.
    if (!path.startsWith('api/')) event.respondWith(loadPage(request))
  } else if (path.startsWith('assets/')) event.respondWith(loadFile(request))
})

/** The page as the service has it now, so that a new version is never missed; the kept one where that cannot be had. */
async function loadPage(request) {
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(PATIENCE_MS) })
    // What a proxy says while the service is away.
    if (answer.status !== 502 && answer.status !== 504) return answer
  } catch {
    // Unreachable, or too slow.
  }
  const cache = await caches.open(CACHE)
  return (await cache.match(SHELL)) ?? (await cache.match(OFFLINE_PAGE)) ?? Response.error()
}

/** A file with a hash in its name never changes: kept once it was needed. */
async function loadFile(request) {
  const cache = await caches.open(CACHE)
  const known = await cache.match(request)
  if (known !== undefined) return known
  const answer = await fetch(request)
  if (answer.ok) await cache.put(request, answer.clone())
  return answer
}

self.addEventListener('push', (event) => {
  const { id, title, text, path } = readPush(event.data)
  event.waitUntil(
    self.registration.showNotification(title, {
      body: text,
      // The same message again takes the place of the first.
      tag: id,
      icon: 'icon-192.png',
      data: { path },
    }),
  )
})

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(openPage(addressOf(event.notification.data?.path)))
})

/** What was pushed; a browser shows something in any case. */
function readPush(data) {
  const fallback = { id: 'alert', title: 'Mesh Monitoring', text: 'There is an alert', path: '/alerts' }
  try {
    const given = data.json()
    const read = (name) => (typeof given[name] === 'string' ? given[name] : fallback[name])
    return { id: read('id'), title: read('title'), text: read('text'), path: read('path') }
  } catch {
    return fallback
  }
}

/** A page of this site, whatever was pushed. */
function addressOf(path) {
  const { scope } = self.registration
  const url =
    typeof path === 'string' && /^\/(?![/\\])/.test(path) ? new URL(`.${path}`, scope) : new URL('./alerts', scope)
  return url.href.startsWith(scope) ? url.href : new URL('./alerts', scope).href
}

async function openPage(url) {
  const [page] = await self.clients.matchAll({ type: 'window' })
  if (page === undefined) return self.clients.openWindow(url)
  await page.navigate(url)
  await page.focus().catch(() => {})
}
