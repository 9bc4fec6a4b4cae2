import { BASE } from '../api.ts'

/** Waits until the data of the page is loaded. */
const REST_MS = 3000

/**
 * Makes the browser store the files of the application, so that it opens without the service; returns a function to
 * cancel that.
 */
export function keepFiles(): () => void {
  const timer = setTimeout(() => void start(), REST_MS)
  return () => clearTimeout(timer)
}

async function start(): Promise<void> {
  // Only over https, or on this machine itself.
  if (!('serviceWorker' in navigator)) return
  try {
    await navigator.serviceWorker.register(`${BASE}sw.js`, { scope: BASE })
    await navigator.serviceWorker.ready
    // Files loaded before the worker existed. The browser has them and passes them on without a request.
    const files = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/assets/'))
    await Promise.all(files.map(({ name }) => fetch(name)))
  } catch {
    // Blocked by the browser, or the service is unreachable. The next visit tries again.
  }
}
