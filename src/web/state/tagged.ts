import type { ClientResponse } from 'hono/client'
import { askAs, send } from '../api.ts'

type Ask = (options: { readonly headers: Record<string, string> }) => Promise<ClientResponse<unknown, number>>

/** A list that is asked for again and again: if it is unchanged, the answer is empty. */
export type Tagged<T> = {
  /** Throws `ApiError`. */
  read(ask: Ask): Promise<T>
}

export function createTagged<T>(): Tagged<T> {
  let last: { readonly etag: string; readonly data: T } | null = null
  return {
    async read(ask) {
      const known = last
      const response = await send(ask({ headers: known === null ? {} : { 'If-None-Match': known.etag } }))
      if (response.status === 304 && known !== null) return known.data
      const data = await askAs<T>(Promise.resolve(response))
      const etag = response.headers.get('etag')
      last = etag === null ? null : { etag, data }
      return data
    },
  }
}
