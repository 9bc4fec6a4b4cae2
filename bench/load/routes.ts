import { NODE } from '../seed.ts'
import type { Running } from '../servers/processes.ts'

export type Reader = { readonly service: Running; readonly cookie: string }

export const get = ({ service, cookie }: Reader, path: string, method = 'GET'): Promise<Response> =>
  fetch(`http://127.0.0.1:${service.port}${path}`, { method, headers: { cookie } })

/** Every documented GET route that needs no other parameter than these. */
export async function routesOf(reader: Reader): Promise<string[]> {
  const { paths } = Object(await (await get(reader, '/api/openapi.json')).json())
  const [newest] = Object(await (await get(reader, '/api/messages?limit=1')).json()).messages
  const values: readonly (readonly [RegExp, string])[] = [
    [/^\/api\/nodes\/\{id\}/, String(NODE)],
    [/^\/api\/messages\/\{id\}/, String(newest.id)],
    [/^\/api\/users\/\{id\}/, '1'],
    [/^\/api\/telemetry\/\{\w+\}/, String(NODE)],
  ]
  return Object.entries<object>(paths)
    .filter(([, methods]) => 'get' in methods)
    .flatMap(([path]) => {
      const value = values.find(([pattern]) => pattern.test(path))?.[1]
      const filled = value === undefined ? path : path.replace(/\{\w+\}/, value)
      return /\{|\/events$|\/oidc\/|\/export$/.test(filled) ? [] : [filled]
    })
}
