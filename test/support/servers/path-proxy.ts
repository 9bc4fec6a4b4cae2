import { createServer, request } from 'node:http'
import { portOf } from './port-of.ts'

export type PathProxy = {
  readonly url: string
  /** Serves the service at `url` below a path, which it removes; an empty path is the root. */
  serve(path: string, url: string): void
  close(): Promise<void>
}

/** A reverse proxy with several services under the paths of one host. */
export async function startPathProxy(): Promise<PathProxy> {
  const services = new Map<string, string>()
  const server = createServer((asked, answer) => {
    const url = asked.url ?? '/'
    const longestFirst = [...services].toSorted(([a], [b]) => b.length - a.length)
    const [path, service] = longestFirst.find(([each]) => url.startsWith(`${each}/`)) ?? []
    if (path === undefined || service === undefined) return answer.writeHead(404).end()
    const { method, headers } = asked
    const passed = request(service + url.slice(path.length), { method, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.rawHeaders)
      got.pipe(answer)
    })
    passed.on('error', () => answer.destroy())
    answer.on('close', () => passed.destroy())
    asked.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    serve: (path, url) => void services.set(path, url),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
