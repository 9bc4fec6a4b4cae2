import type { CDPSession } from 'playwright-core'

type Counted = {
  /** Since the last call. */
  take(): { total: number; by: Map<string, number> }
  isFinished(path: string): boolean
}

/** Counts the bytes that a page receives, headers included, as the network of the browser sees them. */
export async function countBytes(cdp: CDPSession): Promise<Counted> {
  const urls = new Map<string, string>()
  const received = new Map<string, number>()
  const finished = new Set<string>()
  let taken = new Map<string, number>()
  cdp.on('Network.responseReceived', ({ requestId, response }) => {
    urls.set(requestId, new URL(response.url).pathname)
    received.set(requestId, response.encodedDataLength)
  })
  cdp.on('Network.dataReceived', ({ requestId, encodedDataLength }) => {
    received.set(requestId, (received.get(requestId) ?? 0) + encodedDataLength)
  })
  cdp.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    received.set(requestId, encodedDataLength)
    finished.add(urls.get(requestId) ?? '')
  })
  await cdp.send('Network.enable')
  return {
    isFinished: (path) => finished.has(path),
    take() {
      const by = new Map<string, number>()
      for (const [id, bytes] of received) {
        const url = urls.get(id) ?? id
        by.set(url, (by.get(url) ?? 0) + bytes - (taken.get(id) ?? 0))
      }
      taken = new Map(received)
      return { total: [...by.values()].reduce((sum, bytes) => sum + bytes, 0), by }
    },
  }
}

export const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`
export const largest = (by: Map<string, number>) =>
  [...by]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, 4)
    .map(([url, bytes]) => `${url} ${kilobytes(bytes)}`)
    .join(', ')
