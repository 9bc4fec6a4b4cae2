import { afterEach, expect, it, test } from 'vitest'
import { parseConfig } from '../../../src/app/config/config.ts'
import { configuredLinks, hasLinks } from '../../../src/node/radio/configured.ts'
import { openRadio } from '../../../src/node/radio/radio.ts'
import { isOwnKind, LINK_KINDS, type LinkKind, SOURCES } from '../../../src/shared/mesh/link-kinds.ts'
import { START } from '../../support/app.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { textPacket } from '../../support/mesh/mesh.ts'
import { startMqttBroker } from '../../support/radio/mqtt-broker.ts'
import { fromRadio, startRadioDevice } from '../../support/radio/device.ts'
import { until } from '../../support/radio/service.ts'

const endings: (() => unknown)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

/** One link of each kind that the environment can name. */
const LINKS: Partial<Readonly<Record<LinkKind, { readonly env: Record<string, string>; readonly name: string }>>> = {
  tcp: { env: { MESHTASTIC_TCP: 'hill.example' }, name: 'hill.example:4403' },
  mqtt: { env: { MESHTASTIC_MQTT_URL: 'mqtt://club:hidden-word@broker.example' }, name: 'mqtt://broker.example' },
  demo: { env: { DEMO: 'true' }, name: 'demo' },
}

function configOf(env: Record<string, string>) {
  const parsed = parseConfig(env)
  if (!parsed.ok) throw new Error(parsed.problems.join())
  return parsed.config
}

const namesOf = (links: readonly { readonly name: string }[]) => links.map(({ name }) => name)

test.each(LINK_KINDS)('a configured link of the kind %s counts for the lease of several instances', (kind) => {
  const { env = {}, name = null } = LINKS[kind] ?? {}
  const config = configOf(env)
  const { radios, feeds, replaced } = configuredLinks(config)
  const names = name === null ? [] : [name]
  expect(hasLinks(config)).toBe(name !== null)
  expect([namesOf(radios), namesOf(feeds), replaced]).toStrictEqual(isOwnKind(kind) ? [names, [], []] : [[], names, []])
  // What pages tell people to set is what makes one.
  expect(Object.keys(env).some((variable) => variable === SOURCES[kind].setting?.replace(/=.*/, ''))).toBe(
    SOURCES[kind].setting !== null,
  )
})

test('without any link there is none to hold the lease for', () => {
  expect(hasLinks(configOf({}))).toBe(false)
})

test('the simulated radio replaces a link of every other kind', () => {
  const named = LINK_KINDS.filter((kind) => LINKS[kind] !== undefined)
  const env = named.map((kind) => LINKS[kind]?.env)
  const { radios, feeds, replaced } = configuredLinks(configOf(Object.assign({}, ...env)))
  expect([namesOf(radios), feeds]).toStrictEqual([['demo'], []])
  expect(replaced).toStrictEqual(named.filter((kind) => kind !== 'demo'))
})

it('takes the time from its own radios, and from no broker', async () => {
  const device = await startRadioDevice()
  const broker = await startMqttBroker()
  endings.push(() => Promise.all([device.stop(), broker.stop()]))
  const { heard, clock, count } = await listen({
    MESHTASTIC_TCP: `127.0.0.1:${device.port}`,
    MESHTASTIC_MQTT_URL: broker.url,
  })
  await broker.publishPacket({ ...textPacket(8, 'by a gateway'), rxTime: 1_700_000_008 }, 0xa)
  device.send(fromRadio({ case: 'packet', value: { ...textPacket(9, 'by radio'), rxTime: 1_700_000_009 } }))
  await until(() => {
    clock.advance(100)
    expect(count()).toBe(2)
  })
  expect(heard).toStrictEqual([[`the radio 127.0.0.1:${device.port}`, 1_700_000_009_000]])
})

it('takes no time from the simulated radio', async () => {
  const { heard, clock, close, count } = await listen({ DEMO: 'true' })
  clock.advance(5 * 60_000)
  await close()
  expect(count()).toBeGreaterThan(10)
  expect(heard).toStrictEqual([])
})

/** A service with these links, and the times that it was told. */
async function listen(env: Record<string, string>) {
  const clock = createManualClock(START)
  const store = openMemoryStore()
  endings.push(() => store.close())
  const heard: unknown[] = []
  const clockWatch = {
    trusted: clock.now,
    state: () => ({ state: 'confirmed' as const, confirmed: clock.now() }),
    agree: (by: string, theirs: number) => heard.push([by, theirs]),
    keep: async () => {},
  }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const radio = openRadio({ config: configOf(env), store, log, clock, clockWatch })
  endings.push(() => radio.close())
  radio.start()
  const isDemo = env['DEMO'] !== undefined
  if (!isDemo)
    await until(() => expect(radio.links().map(({ state }) => state)).toStrictEqual(['connected', 'connected']))
  const count = () => store.sqlite.prepare('select count(*) from packets').pluck().get()
  return { heard, clock, close: () => radio.close(), count }
}
