import { afterEach, beforeEach, expect, test } from 'vitest'
import { expireCommands } from '../../src/app/mesh/downlink/commands.ts'
import { packet, text } from '../support/mesh/mesh.ts'
import { type Commanded, type Commander, startCommanded, startCommander } from '../support/radio/commanding.ts'
import { fromRadio } from '../support/radio/device.ts'
import { FAR, until } from '../support/radio/service.ts'
import { figure } from './figures.ts'

// The faults of a collector and of what is around it, while texts are commanded and heard: each is sent once at most, and
// nobody is told more than what happened.

type Site = { readonly commander: Commander; hill: Commanded; restart(content?: Buffer): Promise<void> }
type Fault = (site: Site) => void | Promise<void>

let site: Site
/** Radios that the collector has had: another start of it has another one. */
let radios: Commanded['device'][]
/** When each text was asked for, by its packet id, in the collector's time. */
let asked: Map<number, number>
let heard: string[]

beforeEach(async () => {
  const commander = await startCommander()
  const hill = await startCommanded(commander)
  radios = [hill.device]
  asked = new Map()
  heard = []
  site = {
    commander,
    hill,
    async restart(content) {
      await site.hill.stop()
      site.hill = await startCommanded(commander, {}, content)
      radios.push(site.hill.device)
    },
  }
  await pass(() => expect(column('select count(*) from radio_listeners')).toStrictEqual([1]))
})
afterEach(async () => {
  await site.hill.stop()
  await site.commander.stop()
})

const column = (sql: string, { app } = site.commander) => app.store.sqlite.prepare(sql).pluck().all()

/** Lets time pass on both sides until this holds. */
async function pass(check: () => void | Promise<void>, stepMs = 100): Promise<void> {
  let steps = 0
  await until(async () => {
    site.hill.clock.advance(stepMs)
    site.commander.clock.advance(stepMs)
    steps += 1
    if (steps % 50 === 0) await expireCommands({ ...site.commander.app.ports, now: site.commander.clock.now })
    await check()
  })
}

async function passFor(ms: number): Promise<void> {
  const end = site.hill.clock.now() + ms
  await pass(() => expect(site.hill.clock.now()).toBeGreaterThanOrEqual(end))
}

/** Commands a text, if a collector listens, and hears another one. */
async function live(): Promise<void> {
  const words = `heard ${heard.length}`
  heard.push(words)
  site.hill.device.send(fromRadio(packet(text(words))))
  const { status, message } = await site.commander.send({ text: `commanded ${asked.size}`, to: FAR })
  if (status === 202) asked.set(Number(message['packetId']), site.hill.clock.now())
  await passFor(3000)
}

const timesSent = (id: number) =>
  radios.flatMap(({ received }) =>
    received.filter(({ payloadVariant: { case: kind, value } }) => kind === 'packet' && value.id === id),
  ).length

const NEVER: readonly unknown[] = ['NOT_SENT', 'EXPIRED', 'REFUSED']
const SENT: readonly unknown[] = ['sent', 'relayed', 'delivered']
type State = { readonly id: number; readonly s: string; readonly e: string | null }

function states(): State[] {
  const sql = "select packet_id id, delivery_state s, routing_error e from messages where direction = 'out'"
  return Object(site.commander.app.store.sqlite.prepare(sql).all())
}

/** What must hold at any time. A packet that is on its way over loopback arrives a moment later. */
async function checkInvariants(): Promise<void> {
  await until(() => {
    for (const { id, s, e } of states()) {
      const times = timesSent(id)
      expect(times, `${id} ${s} ${e}`).toBeLessThanOrEqual(1)
      if (SENT.includes(s)) expect(times, `${id} ${s}`).toBe(1)
      if (s === 'waiting' || (s === 'failed' && NEVER.includes(e))) expect(times, `${id} ${s} ${e}`).toBe(0)
    }
  })
}

/** The other service loses requests to this path before they arrive, or the answers. */
const losing =
  (step: 'asked' | 'answered', path: RegExp): Fault =>
  ({ commander }) => {
    commander.hook = (at, asked) => (at === step && path.test(asked) ? 'lost' : 'goes on')
  }
const every =
  (path: RegExp, run: (site: Site) => Promise<void>): Fault =>
  (found) => {
    let isRunning = false
    found.commander.hook = async (at, asked): Promise<'goes on'> => {
      if (at === 'answered' && path.test(asked) && !isRunning) {
        isRunning = true
        await run(found)
        isRunning = false
      }
      return 'goes on'
    }
  }
const restarts = ({ commander }: Site) => commander.restart()
/** The database is as it was at that moment, and the process and its radio's port are others. */
const killed =
  (step: 'asked' | 'answered', path: RegExp): Fault =>
  async (found) => {
    let left: Buffer | null = null
    found.commander.hook = (at, asked) => {
      if (left === null && at === step && path.test(asked)) left = found.hill.store.sqlite.serialize()
      return left === null ? 'goes on' : 'lost'
    }
    const { status, message } = await found.commander.send({ text: 'before the kill', to: FAR })
    if (status === 202) asked.set(Number(message['packetId']), found.hill.clock.now())
    await pass(() => expect(left).not.toBeNull())
    await found.restart(left ?? undefined)
    found.commander.hook = () => 'goes on'
  }
const breaking =
  (table: string): Fault =>
  ({ hill }) =>
    void hill.store.sqlite.exec(
      `create trigger broken before insert on ${table} begin select raise(abort, 'out of order'); end`,
    )

const mended = ({ commander, hill }: Site) => {
  commander.hook = () => 'goes on'
  hill.store.sqlite.exec('drop trigger if exists broken')
  hill.device.setSilent(false)
  hill.device.refuse(false)
}

const FAULTS: readonly (readonly [name: string, fault: Fault])[] = [
  ['nothing arrives', losing('asked', /./)],
  ['no answer arrives', losing('answered', /./)],
  ['no delivery arrives', losing('asked', /ingest$/)],
  ['no answer to a delivery arrives', losing('answered', /ingest$/)],
  ['no question for commands arrives', losing('asked', /commands$/)],
  ['no command arrives', losing('answered', /commands$/)],
  ['no command can be taken', losing('asked', /take$/)],
  ['no answer to what was taken arrives', losing('answered', /take$/)],
  ['no report arrives', losing('asked', /report$/)],
  ['no answer to a report arrives', losing('answered', /report$/)],
  ['the other service restarts at each delivery', every(/ingest$/, restarts)],
  ['the other service restarts whenever a command is taken', every(/take$/, restarts)],
  ['the collector is killed before it takes a command', killed('asked', /take$/)],
  ['the collector is killed when it has taken one', killed('answered', /take$/)],
  ['the collector is killed when the radio has it', killed('asked', /report$/)],
  ['the radio hangs up', ({ hill }) => hill.device.kick()],
  [
    'the radio is gone',
    ({ hill }) => {
      hill.device.refuse(true)
      hill.device.kick()
    },
  ],
  ['the radio falls silent', ({ hill }) => hill.device.setSilent(true)],
  ['the collector can write down no command', breaking('taken_commands')],
  ['the collector can note in no audit log who asked', breaking('audit_log')],
]

test.each(FAULTS)('%s', async (name, fault) => {
  await live()
  await fault(site)
  for (let n = 0; n < 4; n++) {
    await live()
    await checkInvariants()
  }
  // Longer than a command may wait.
  await passFor(60_000)
  await checkInvariants()
  mended(site)
  await pass(async () => {
    await checkInvariants()
    expect(states().filter(({ s }) => s === 'waiting' || s === 'taken')).toStrictEqual([])
  }, 250)
  // It goes on afterwards.
  let last = 0
  await pass(async () => {
    const { status, message } = await site.commander.send({ text: 'afterwards', to: FAR })
    expect(status).toBe(202)
    last = Number(message['packetId'])
  }, 1000)
  await pass(() => expect(states().find(({ id }) => id === last)?.s).toBe('sent'))
  await checkInvariants()
  const told = Map.groupBy(states(), ({ s, e }) => (e === null ? s : `${s} (${e})`))
  figure(name, [...told].map(([state, all]) => `${all.length} ${state}`).join(', '))
  // What is delivered meanwhile is there once, too.
  const texts = column("select text from messages where direction = 'in' order by text")
  expect(texts).toStrictEqual([...new Set(texts)])
})
