import { backOff } from '../../shared/back-off.ts'
import { BASE } from '../api.ts'

/** Waits until the data of the page is loaded. */
const REST_MS = 3000
const PAUSES = { firstMs: 5000, mostMs: 10 * 60_000 }

/**
 * Makes the browser store the files of the application, so that it opens without the service, and tries again until
 * they are stored; returns a function to cancel that.
 */
export function keepFiles(): () => void {
  let failures = 0
  let timer = setTimeout(() => void run(), REST_MS)
  let isCancelled = false
  const run = async () => {
    const isDone = await tryToKeep()
    if (isDone || isCancelled) return
    timer = setTimeout(() => void run(), backOff(failures++, { ...PAUSES, jitter: 0.5 + Math.random() / 2 }))
  }
  return () => {
    isCancelled = true
    clearTimeout(timer)
  }
}

/** False: a request failed, and may succeed later. */
async function tryToKeep(): Promise<boolean> {
  // Only over https, or on this machine itself.
  if (!('serviceWorker' in navigator)) return true
  try {
    await startWorker()
    // Files loaded before the worker existed. The browser has them and passes them on without a request.
    const files = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/assets/'))
    await Promise.all(files.map(({ name }) => fetch(name)))
    return true
  } catch (error) {
    // The browser blocks service workers on this site.
    return error instanceof DOMException && error.name === 'SecurityError'
  }
}

/**
 * Starts the service worker, unless it runs already. It runs once it has stored the files that every page needs, and
 * handles the requests of this page; `navigator.serviceWorker.ready` comes earlier, or never after a failure. Throws if
 * a request failed: the browser then forgets the worker, until it is started again.
 */
export async function startWorker(): Promise<ServiceWorkerRegistration> {
  const registration = await navigator.serviceWorker.register(`${BASE}sw.js`, { scope: BASE })
  const worker = registration.active ?? registration.waiting ?? registration.installing
  if (worker === null) throw new Error('the files of the application could not be stored')
  await new Promise<void>((resolve, reject) => {
    const look = () => {
      if (worker.state === 'activated') resolve()
      if (worker.state === 'redundant') reject(new Error('the files of the application could not be stored'))
    }
    worker.addEventListener('statechange', look)
    look()
  })
  return registration
}
