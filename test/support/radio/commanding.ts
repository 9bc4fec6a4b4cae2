import { createEvents } from '../../../src/app/mesh/live/events.ts'
import { createLog } from '../../../src/app/base/log.ts'
import { parseConfig } from '../../../src/app/config/config.ts'
import { type Downlink, startDownlink } from '../../../src/node/collector/downlink.ts'
import { type Listening, listen } from '../../../src/node/http/server.ts'
import { WHOLE_SCOPE } from '../../../src/shared/access/scope.ts'
import { type Client, createTestApp, START, type TestApp } from '../app.ts'
import { createManualClock } from '../manual-clock.ts'
import { LORA, MAY_SEND, type RadioService, startRadioService } from './service.ts'

/** The service that commands: what it does with a request of the collector before or after it is handled. */
export type Hook = (step: 'asked' | 'answered', path: string) => 'lost' | 'goes on' | Promise<'lost' | 'goes on'>

/** A service without radios on loopback, to which a collector delivers. */
export type Commander = {
  readonly url: string
  readonly token: string
  readonly app: TestApp
  readonly sender: Client
  readonly clock: ReturnType<typeof createManualClock>
  hook: Hook
  /** All that the collector has sent. */
  readonly bodies: readonly string[]
  /** Another process on the same database answers from now on. */
  restart(): Promise<void>
  send(body: object): Promise<{ readonly status: number; readonly message: Record<string, unknown> }>
  /** State and error of the newest text. */
  state(): Promise<[unknown, unknown]>
  stop(): Promise<void>
}

export async function startCommander(): Promise<Commander> {
  const clock = createManualClock(START)
  const ports = () => ({ now: clock.now, events: createEvents(clock) })
  let app = await createTestApp({ ports: ports() })
  const admin = await app.admin()
  const scopes = ['ingest', 'radio']
  const made = await admin.send('POST', '/api/tokens', { name: 'hill', scopes, expiresInDays: null })
  const token = String(Object(await made.json()).token)
  let sender = await app.user('sender', MAY_SEND, WHOLE_SCOPE)
  const bodies: string[] = []
  const answer = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url)
    if ((await commander.hook('asked', pathname)) === 'lost') return new Response(null, { status: 502 })
    const { method, headers, signal } = request
    const body = method === 'GET' ? {} : { body: await request.text() }
    bodies.push(`${pathname}${search} ${'body' in body ? body.body : ''}`)
    const response = await app.request(`${pathname}${search}`, { method, headers, signal, ...body })
    return (await commander.hook('answered', pathname)) === 'lost' ? new Response(null, { status: 502 }) : response
  }
  const server: Listening = await listen(
    (request) => answer(request).catch(() => new Response(null, { status: 502 })),
    0,
    '127.0.0.1',
  )
  const commander: Commander = {
    url: `http://127.0.0.1:${server.port}`,
    token,
    get app() {
      return app
    },
    get sender() {
      return sender
    },
    clock,
    bodies,
    hook: () => 'goes on',
    async restart() {
      app.ports.events?.close()
      app = await createTestApp({ store: app.store, ports: ports() })
      const { cookie } = sender
      sender = Object.assign(app.client(), { cookie, id: 0 })
    },
    async send(body) {
      const sent = await sender.send('POST', '/api/messages', body)
      return { status: sent.status, message: Object(await sent.json()).message }
    },
    async state() {
      const { messages } = Object(await (await sender.send('GET', '/api/messages')).json())
      return [messages[0].deliveryState, messages[0].routingError]
    },
    async stop() {
      app.ports.events?.close()
      await server.close(0)
      app.close()
    },
  }
  return commander
}

/** A service with a radio that another one may command. */
export type Commanded = RadioService & {
  readonly downlink: Downlink
  readonly logged: readonly string[]
}

/** `env`: settings besides those of its target. */
export async function startCommanded(
  { url, token }: { readonly url: string; readonly token: string },
  env: Readonly<Record<string, string>> = {},
  content?: Buffer,
): Promise<Commanded> {
  const all = {
    COLLECTOR_TARGET_URL: url,
    COLLECTOR_TOKEN: token,
    COLLECTOR_NAME: 'hill',
    COLLECTOR_DOWNLINK: 'texts,traceroutes,requests',
    ...env,
  }
  const service = await startRadioService([LORA], all, content)
  const { clock, store, radio } = service
  const parsed = parseConfig(all)
  if (!parsed.ok) throw new Error(parsed.problems.join())
  const logged: string[] = []
  const log = createLog({ level: 'debug', format: 'json', now: clock.now, write: (line) => logged.push(line) })
  const needs = { config: parsed.config, store, log, radio, events: null, random: () => 0.5 }
  const downlink = startDownlink({ ...needs, monotonic: clock.now }, clock)
  return {
    ...service,
    downlink,
    logged,
    async stop() {
      await downlink.stop()
      await service.stop()
    },
  }
}
