import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import * as z from 'zod'

const bodySchema = z.object({
  source: z.string(),
  packets: z.array(
    z.object({
      data: z.string(),
      receivedAt: z.int().optional(),
      replayed: z.boolean(),
      gateway: z.int().optional(),
      identity: z.string().optional(),
    }),
  ),
})
export type Delivered = z.infer<typeof bodySchema>

export type Answer = { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }

/** A service that accepts deliveries, on loopback. */
export type CollectorTarget = {
  readonly url: string
  /** The received deliveries, whatever it answered. */
  readonly deliveries: readonly Delivered[]
  readonly tokens: readonly (string | undefined)[]
  /** Its answer to the next deliveries; null: success, as at the start. `hang`: no answer. */
  answer: ((delivery: Delivered) => Answer | 'hang' | null) | null
  stop(): Promise<void>
}

export async function startCollectorTarget(): Promise<CollectorTarget> {
  const deliveries: Delivered[] = []
  const tokens: (string | undefined)[] = []
  const respond = async (request: IncomingMessage): Promise<Answer | 'hang'> => {
    if (request.method !== 'POST' || request.url !== '/api/ingest') return { status: 404 }
    const delivery = bodySchema.parse(JSON.parse(await text(request)))
    deliveries.push(delivery)
    tokens.push(request.headers.authorization)
    const accepted = { accepted: delivery.packets.length, duplicates: 0, rejected: [] }
    return target.answer?.(delivery) ?? { status: 200, body: JSON.stringify(accepted) }
  }
  const server = createServer((request, response) => {
    respond(request)
      .then((answer) => (answer === 'hang' ? null : response.writeHead(answer.status, answer.headers).end(answer.body)))
      .catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the target has no port')
  const target: CollectorTarget = {
    url: `http://127.0.0.1:${address.port}`,
    deliveries,
    tokens,
    answer: null,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return target
}
