import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import { nodes } from '../../../src/db/schema.ts'
import type { MeshPacket } from '../../../src/meshtastic/gen/packet_pb.ts'
import { Routing_Error, RoutingSchema } from '../../../src/meshtastic/gen/payloads_pb.ts'
import { PortNum } from '../../../src/meshtastic/gen/ports_pb.ts'
import { openDatabase } from '../../../src/node/database.ts'
import { LOCAL, packet } from '../mesh/mesh.ts'
import { fromRadio, type RadioDevice, startRadioDevice } from './device.ts'
import { openSite, type Site, type SiteBrowser, type Visitor } from '../web/site.ts'

export const SITE_PASSWORD = 'three radios on one hill'

/** The web application with a radio on loopback, and an administrator at its page. */
export type RadioSite = {
  readonly site: Site
  readonly device: RadioDevice
  readonly admin: Visitor
  /** What the radio hears next. */
  hear(...heard: Parameters<typeof packet>): void
  /** The packet that the radio received next. */
  sent(): Promise<MeshPacket>
  /** Acknowledges or refuses one of our packets, as the radio itself or as the receiver. */
  confirm(packet: MeshPacket, from: number, errorReason?: Routing_Error): void
  /** Another user, with these permissions. */
  join(username: string, permissions: object, browser?: SiteBrowser): Promise<Visitor & { readonly id: number }>
  grant(id: number, permissions: object): Promise<void>
  close(): Promise<void>
}

/** `others`: radios after the first one; their creator stops them. `fill`: as in `openSite`. */
export async function openRadioSite(
  radio?: RadioDevice,
  others: readonly RadioDevice[] = [],
  fill?: Parameters<typeof openSite>[1],
): Promise<RadioSite> {
  const device = radio ?? (await startRadioDevice())
  const MESHTASTIC_TCP = [device, ...others].map(({ port }) => `127.0.0.1:${port}`).join(',')
  const site = await openSite({ ADMIN_PASSWORD: SITE_PASSWORD, DEMO: 'false', MESHTASTIC_TCP }, fill)
  const admin = await site.visit()
  await admin.goto('/')
  await admin.signIn('admin', SITE_PASSWORD)
  await isLive(admin)
  const headers = { origin: site.base }
  const grant = async (id: number, permissions: object) => {
    const url = `${site.base}/api/users/${id}/permissions`
    const answer = await admin.page.request.put(url, { headers, data: { permissions } })
    if (answer.status() !== 200) throw new Error(`${url}: ${answer.status()}`)
  }
  return {
    site,
    device,
    admin,
    grant,
    hear: (...heard) => device.send(fromRadio(packet(...heard))),
    async sent() {
      const { payloadVariant } = await device.next('packet')
      if (payloadVariant.case !== 'packet') throw new Error('no packet')
      return payloadVariant.value
    },
    confirm: (about, from, errorReason = Routing_Error.NONE) => device.send(routing(about, from, errorReason)),
    async join(username, permissions, browser = site) {
      const data = { username, password: SITE_PASSWORD }
      const made = await admin.page.request.post(`${site.base}/api/users`, { headers, data })
      const { id } = Object(Object(await made.json()).user)
      await grant(id, permissions)
      const visitor = await browser.visit()
      await visitor.goto('/')
      await visitor.signIn(username, SITE_PASSWORD)
      await isLive(visitor)
      return { ...visitor, id }
    },
    async close() {
      await site.close()
      await device.stop()
    },
  }
}

/** Until this page gets live events. */
export async function isLive({ page }: Pick<Visitor, 'page'>): Promise<void> {
  await page.locator('.live-live').first().waitFor({ state: 'attached' })
}

function routing({ id }: MeshPacket, from: number, errorReason: Routing_Error): Uint8Array {
  const payload = toBinary(
    RoutingSchema,
    create(RoutingSchema, { variant: { case: 'errorReason', value: errorReason } }),
  )
  const decoded = { case: 'decoded', value: { portnum: PortNum.ROUTING_APP, payload, requestId: id } } as const
  // Packets from the radio itself were not heard over the air.
  const heard = from === LOCAL ? { id: id - 1 - errorReason } : { id: id - 50, rxRssi: -70 }
  return fromRadio({ case: 'packet', value: { from, to: LOCAL, ...heard, payloadVariant: decoded } })
}

export function readData({ payloadVariant }: MeshPacket) {
  if (payloadVariant.case !== 'decoded') throw new Error('not readable')
  return payloadVariant.value
}

/** The number of the first node of a crowd; the others follow. */
export const FIRST_OF_MANY = 0x10000000

/** Stores nodes with names and places, the first of them last heard at this time. */
export async function storeManyNodes({ data }: Site, count: number, lastHeard: number): Promise<void> {
  const store = openDatabase(join(data, 'mesh.db'))
  const many = Array.from({ length: count }, (_, index) => ({
    nodeNum: FIRST_OF_MANY + index,
    longName: `Crowd ${String(index).padStart(3, '0')}`,
    latitude: 47 + index / 1000,
    longitude: 8 + index / 1000,
    firstHeard: lastHeard,
    lastHeard: lastHeard + index,
  }))
  for (let at = 0; at < count; at += 500) await store.db.insert(nodes).values(many.slice(at, at + 500))
  store.close()
}
