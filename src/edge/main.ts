import { DurableObject } from 'cloudflare:workers'
import type { Env } from './environment.ts'
import { ALERTS_AFTER_MS, INDEX_HEADER, type LiveRpc, type Passed, tellsAlert, type Told } from './live/protocol.ts'
import type { Readers } from './live/readers.ts'
import { deliverAlerts, serveLive } from './worker.ts'

// What wrangler deploys.
export { default } from './worker.ts'

/**
 * The class of the binding LIVE: the objects with the streams of live events. They store nothing but an alarm: an object
 * that was evicted begins anew, and readers that come back load everything again. Until the first one comes there is
 * nobody to tell. The alarm of the first object sends alerts; it is set only while some are due.
 */
export class LiveObject extends DurableObject<Env> implements LiveRpc {
  #readers: Promise<Readers> | null = null

  override async fetch(request: Request): Promise<Response> {
    return (await this.#open(Number(request.headers.get(INDEX_HEADER)))).fetch(request)
  }

  async tell(told: Told): Promise<void> {
    if (tellsAlert(told)) await this.#wake(Date.now() + ALERTS_AFTER_MS)
    const readers = await this.#readers
    if (readers?.isIdle()) this.#readers = null
    else await readers?.tell(told)
  }

  async join(index: number): Promise<Passed> {
    return (await this.#open(0)).join(index)
  }

  override async alarm(): Promise<void> {
    const next = await deliverAlerts(this.env)
    if (next !== null) await this.#wake(next)
  }

  /** Lets the alarm ring by then. Without it, the trigger of each minute sends the alerts. */
  async #wake(at: number): Promise<void> {
    const { storage } = this.ctx
    try {
      const set = await storage.getAlarm()
      if (set === null || set > at) await storage.setAlarm(at)
    } catch (error) {
      console.error('The alarm for alerts could not be set', error)
    }
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
