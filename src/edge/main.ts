import { DurableObject } from 'cloudflare:workers'
import type { Env } from './environment.ts'
import { INDEX_HEADER, type LiveRpc, type Passed, type Told } from './live/protocol.ts'
import type { Readers } from './live/readers.ts'
import { serveLive } from './worker.ts'

// What wrangler deploys.
export { default } from './worker.ts'

/**
 * The class of the binding LIVE: the objects with the streams of live events. They store nothing: an object that was
 * evicted begins anew, and readers that come back load everything again. Until the first one comes there is nobody to
 * tell.
 */
export class LiveObject extends DurableObject<Env> implements LiveRpc {
  #readers: Promise<Readers> | null = null

  override async fetch(request: Request): Promise<Response> {
    return (await this.#open(Number(request.headers.get(INDEX_HEADER)))).fetch(request)
  }

  async tell(told: Told): Promise<void> {
    const readers = await this.#readers
    if (readers?.isIdle()) this.#readers = null
    else await readers?.tell(told)
  }

  async join(index: number): Promise<Passed> {
    return (await this.#open(0)).join(index)
  }

  #open(index: number): Promise<Readers> {
    const known = this.#readers
    if (known !== null) return known
    const opening = this.#load(index)
    opening.catch(() => (this.#readers = null))
    this.#readers = opening
    return opening
  }

  async #load(index: number): Promise<Readers> {
    const { openReaders } = await import('./live/readers.ts')
    const { LIVE: objects } = this.env
    if (objects === undefined) throw new Error('there is no binding LIVE')
    return openReaders({ objects, index, serve: (events) => serveLive(this.env, events) })
  }
}
