// The service worker: shows alerts that are pushed, and a page of its own while the service is away. Nothing else is kept,
// and of the API nothing at all.
const KEPT = 'offline-1'
const OFFLINE_PAGE = 'offline.html'

self.addEventListener('install', (event) => {
  const keep = async () => {
    const cache = await caches.open(KEPT)
    await cache.add(new Request(OFFLINE_PAGE, { cache: 'reload' }))
    await self.skipWaiting()
  }
  event.waitUntil(keep())
})

self.addEventListener('activate', (event) => {
  const begin = async () => {
    for (const name of await caches.keys()) if (name !== KEPT) await caches.delete(name)
    await self.clients.claim()
  }
  event.waitUntil(begin())
})

self.addEventListener('fetch', (event) => {
  if (event.request.mode !== 'navigate') return
  const load = async () => {
    try {
      return await fetch(event.request)
    } catch {
      return (await caches.match(OFFLINE_PAGE)) ?? Response.error()
    }
  }
  event.respondWith(load())
})

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
