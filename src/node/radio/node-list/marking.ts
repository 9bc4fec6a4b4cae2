import { compareMarks, type MarkOrder, type Marks, ordersFor, type Tried } from '../../../app/mesh/nodes/marks.ts'
import type { LinkInfo } from '../../../app/mesh/radios/radio.ts'
import type { Store } from '../../../db/store.ts'
import { encodeAdminPacket, encodeMark } from '../../../meshtastic/link/admin-packets.ts'
import type { RadioEvent } from '../../../meshtastic/radio-event.ts'
import { createPacketIds, encodeWantConfig } from '../../../meshtastic/link/to-radio.ts'
import { type Clock, createTimer } from '../../clock.ts'
import type { Link } from '../link.ts'

/** Orders at a time, because a radio rewrites its memory for each. The next ones follow once some of them were taken. */
const MAX_AT_ONCE = 20
/** A radio confirms an order before it has looked whether it can be followed, so its list is read after this time. */
const READ_BACK_MS = 3000
/** More nodes than a radio remembers are not compared, and no list beyond these that wait to be stored. */
const MAX_NODES = 5000
const MAX_LISTS = 4
/** Firmware answers this number with the nodes alone (PhoneAPI.h); older firmware answers it like any other. */
const ONLY_NODES = 69_421

/** Firmware says in these words that it protects no more nodes (NodeDB.h). */
const NO_ROOM = /^Can't (favorite|ignore) 0x([0-9a-f]{1,8}): protected-node limit/i

/** Keeps favourite, ignored and muted nodes the same here and in a radio. */
export type Marking = {
  observe(event: RadioEvent): void
  onState(info: LinkInfo): void
  /** The next list of nodes that the radio completed is stored. */
  stored(): void
  /** A node was marked here. */
  tell(nodeNum: number): void
  stop(): void
}

export function createMarking(options: {
  readonly store: Store
  readonly link: Pick<Link, 'info' | 'send'>
  readonly clock: Clock
  readonly random: () => number
  /** Runs a task later, after those added before. */
  later(run: () => Promise<void>): void
  /** Nodes were marked on the radio, and now are here as well. */
  readonly onChanged: (nums: readonly number[]) => Promise<void>
}): Marking {
  const { store, link, clock, later, onChanged } = options
  const nextId = createPacketIds(options.random)
  const readBack = createTimer(clock)
  /** The nodes that the radio lists at the moment; null: it does not send its list. */
  let listed: Map<number, Marks> | null = null
  let reading = 0
  let isReadingBack = false
  /** Complete lists: their nodes have to be stored before the marks are compared. */
  const complete: { readonly own: number; readonly found: ReadonlyMap<number, Marks>; readonly at: number }[] = []
  /** What the radio was told on this connection: during which reading, and what became of it. */
  const told = new Map<string, { readonly reading: number; isFull: boolean }>()

  const keyOf = ({ nodeNum, mark, isSet }: MarkOrder) => `${nodeNum} ${mark} ${isSet}`
  const begin = () => {
    listed = new Map()
    reading += 1
  }
  const send = (own: number, orders: readonly MarkOrder[]) => {
    for (const order of orders) {
      const { nodeNum, mark, isSet } = order
      // It was told already, and has not been read since.
      if (told.get(keyOf(order))?.reading === reading) continue
      if (!link.send(encodeAdminPacket(own, nextId(), encodeMark(nodeNum, mark, isSet)))) return
      told.delete(keyOf({ ...order, isSet: !isSet }))
      told.set(keyOf(order), { reading, isFull: false })
      readBack.start(READ_BACK_MS, readAgain)
    }
  }
  const readAgain = () => {
    if (!link.send(encodeWantConfig(ONLY_NODES))) return
    isReadingBack = true
    begin()
  }
  const compare = (own: number, found: ReadonlyMap<number, Marks>, at: number) => {
    const triedOf = (order: MarkOrder): Tried | null => {
      const opposite = told.get(keyOf({ ...order, isSet: !order.isSet }))
      const known = told.get(keyOf(order)) ?? (opposite !== undefined && opposite.reading >= at ? opposite : undefined)
      if (known === undefined) return null
      if (known.reading >= at) return 'open'
      return known.isFull ? 'full' : 'told'
    }
    later(async () => {
      const isFresh = told.size === 0
      const { changed, orders, hasTaken } = await compareMarks(store, own, found, triedOf)
      if (changed.length > 0) await onChanged(changed)
      if (isFresh || hasTaken) send(own, orders.slice(0, MAX_AT_ONCE))
    })
  }
  return {
    tell(nodeNum) {
      later(async () => {
        const own = link.info().radio?.nodeNum ?? null
        if (own === null || link.info().state !== 'connected') return
        send(own, await ordersFor(store, own, nodeNum))
      })
    },
    observe(event) {
      if (event.type === 'my-info') begin()
      if (event.type === 'node-info') {
        const { nodeNum, isFavorite, isIgnored, isMuted } = event.node
        if (listed !== null && listed.size < MAX_NODES) listed.set(nodeNum, { isFavorite, isIgnored, isMuted })
      }
      if (event.type === 'notification') {
        const [, , num = ''] = NO_ROOM.exec(event.message) ?? []
        for (const [key, order] of told) if (key.startsWith(`${Number.parseInt(num, 16)} `)) order.isFull = true
      }
      if (event.type !== 'config-complete') return
      const found = complete.length < MAX_LISTS ? listed : null
      const own = link.info().radio?.nodeNum ?? null
      listed = null
      isReadingBack = false
      complete.push({ own: own ?? 0, found: found ?? new Map<number, Marks>(), at: reading })
    },
    stored() {
      const list = complete.shift()
      if (list !== undefined && list.found.size > 0) compare(list.own, list.found, list.at)
    },
    onState({ state }) {
      if (state === 'connected') return
      readBack.stop()
      told.clear()
      // An answer to a connection that ended never comes; the list of the next one begins with my-info.
      if (isReadingBack) listed = null
      isReadingBack = false
    },
    stop: () => readBack.stop(),
  }
}
