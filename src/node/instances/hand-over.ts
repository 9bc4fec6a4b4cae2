import { said, type Said } from '../../app/words/words.ts'
import type { Context } from 'hono'
import * as z from 'zod'
import { seal, unseal } from '../../app/base/sealing.ts'
import { AppError } from '../../app/http/errors.ts'
import type { Log } from '../../app/base/log.ts'
import { addressedBy, peerAddress } from '../http/client-address.ts'
import type { InstancesFile } from './file.ts'
import type { Lease } from './lease.ts'

/** How long a request waits for an instance to take it. */
const TAKE_MS = 5000
/** How long a taken request waits for its answer. */
const ANSWER_MS = 20_000
/** The maximum number of waiting requests of one instance. */
const MAX_WAITING = 50
/** An older request, or one from the future, is ignored. */
const MAX_AGE_MS = 2 * TAKE_MS

export type Fetch = (request: Request, env: unknown) => Response | Promise<Response>

export type HandOver = {
  /**
   * Returns the answer of the instance with the radios to a request; null if none takes it. Throws `radio_unavailable`.
   */
  ask(c: Context): Promise<Response | null>
  /** Whether any instance has the radios now. */
  hasTaker(): boolean
  /** Whether a request was passed on by another instance. */
  isHandedOver(c: Context): boolean
  /** Delivers the answers that have arrived. */
  settle(): void
  /** Answers requests of other instances; call it only while this instance has the lease. */
  serve(fetch: Fetch): void
  /** Waits for the taken requests. */
  idle(): Promise<void>
}

const pairs = z.array(z.tuple([z.string(), z.string()]))
const asked = z.object({
  method: z.string(),
  url: z.string(),
  headers: pairs,
  body: z.string(),
  peer: z.string().nullable(),
})
const answered = z.object({ status: z.int(), headers: pairs, body: z.string() })

const QUESTION = 'instance-question'
const ANSWER = 'instance-answer'

type Waiting = { readonly settle: (sealed: string) => void; readonly fail: (error: unknown) => void }

/**
 * Passes requests to the instance with the radios. The rows are sealed, as they contain the users' credentials. A
 * single statement takes a request, so it is taken once and its packets are sent at most once.
 */
export function openHandOver(needs: {
  readonly file: InstancesFile
  readonly lease: Lease
  readonly secrets: readonly string[]
  readonly log: Log
  readonly now: () => number
}): HandOver {
  const { lease, secrets, log, now } = needs
  const { sqlite, id: origin } = needs.file
  const insert = sqlite.prepare('insert into requests (origin, made_at, body) values (?, ?, ?)')
  const takeBack = sqlite.prepare('delete from requests where id = ? and token is null')
  const forget = sqlite.prepare('delete from requests where id = ?')
  const findAnswers = sqlite.prepare<[string], { id: number; answer: string }>(
    'select id, answer from requests where origin = ? and answer is not null',
  )
  const claim = sqlite.prepare<[object], { id: number; body: string }>(
    `update requests set token = @token
    where id = (select min(id) from requests where token is null and made_at between @now - @age and @now + @age)
      and exists (select 1 from lease where owner = @origin and token = @token)
    returning id, body`,
  )
  const store = sqlite.prepare('update requests set answer = ? where id = ?')
  const giveBack = sqlite.prepare('update requests set token = null where id = ?')
  const sweep = sqlite.prepare('delete from requests where made_at not between ? and ?')
  const waiting = new Map<number, Waiting>()
  const underWay = new Set<Promise<void>>()
  const handedOver = new WeakSet<object>()

  const settle = () => {
    if (waiting.size === 0) return
    for (const { id, answer: sealed } of findAnswers.all(origin)) {
      forget.run(id)
      waiting.get(id)?.settle(sealed)
    }
  }
  const refused = (detail: Said) => new AppError('radio_unavailable', detail)
  const wait = (id: number) =>
    new Promise<string | null>((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const end = (finish: () => void) => {
        clearTimeout(timer)
        waiting.delete(id)
        finish()
      }
      waiting.set(id, {
        settle: (sealed) => end(() => resolve(sealed)),
        fail: (error) => end(() => reject(error instanceof Error ? error : new Error(String(error)))),
      })
      const giveUp = () => {
        forget.run(id)
        waiting
          .get(id)
          ?.fail(
            refused(
              said('The instance with the radios accepted this request and did not answer: check whether it was done'),
            ),
          )
      }
      const whenNotTaken = () => {
        if (takeBack.run(id).changes > 0) end(() => resolve(null))
        else timer = setTimeout(guarded(giveUp, id), ANSWER_MS)
      }
      timer = setTimeout(guarded(whenNotTaken, id), TAKE_MS)
    })
  const guarded = (run: () => void, id: number) => () => {
    try {
      run()
    } catch (error) {
      waiting.get(id)?.fail(error)
    }
  }
  const answer = async (fetch: Fetch, { id, body: sealed }: { id: number; body: string }): Promise<void> => {
    const text = await unseal(secrets, QUESTION, sealed)
    if (text === null) throw new Error('a request that another SESSION_SECRET sealed')
    const { method, url, headers, body, peer } = asked.parse(JSON.parse(text))
    const env = addressedBy(peer, Object.fromEntries(headers))
    handedOver.add(env)
    const init = { method, headers, ...(body === '' ? {} : { body }) }
    // Checked again, because the lease may be lost by now. After this check the request is treated like any other of
    // this instance.
    if (!lease.isHeld()) {
      giveBack.run(id)
      return
    }
    const response = await fetch(new Request(url, init), env)
    const answer = { status: response.status, headers: [...response.headers], body: await response.text() }
    store.run(await seal(secrets, ANSWER, JSON.stringify(answer)), id)
    // This instance may wait for an answer itself, to a request from before it had the radios.
    settle()
  }
  return {
    async ask(c) {
      if (waiting.size >= MAX_WAITING)
        throw refused(said('Too many requests are waiting for the instance with the radios'))
      const { method, url, headers } = c.req.raw
      const body = await c.req.text()
      const question = { method, url, headers: [...headers], body, peer: peerAddress(c) }
      const sealed = await seal(secrets, QUESTION, JSON.stringify(question))
      const id = Number(insert.run(origin, now(), sealed).lastInsertRowid)
      const found = await wait(id)
      if (found === null) return null
      const text = await unseal(secrets, ANSWER, found)
      if (text === null) throw refused(said('The instance with the radios has another SESSION_SECRET'))
      const { status, headers: answer, body: content } = answered.parse(JSON.parse(text))
      return new Response(content === '' ? null : content, { status, headers: answer })
    },
    hasTaker: () => lease.owner() !== null,
    isHandedOver: (c) => handedOver.has(Object(c.env)),
    settle,
    serve(fetch) {
      const ends = { age: MAX_AGE_MS, now: now(), origin, token: lease.token() }
      for (;;) {
        const taken = claim.get(ends)
        if (taken === undefined) break
        const work = answer(fetch, taken).catch((error: unknown) =>
          log.error('A request of another instance failed', { error }),
        )
        underWay.add(work)
        void work.finally(() => underWay.delete(work))
      }
      sweep.run(now() - 10 * MAX_AGE_MS, now() + 10 * MAX_AGE_MS)
    },
    async idle() {
      await Promise.all(underWay)
    },
  }
}
