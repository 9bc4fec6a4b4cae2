/** How long the id of a packet is remembered. */
const REMEMBERED_MS = 600_000
/** The most ids: an app sends far fewer in this time. */
const MAX_IDS = 20_000

/** Which app sent which packet: an id is used once, and its answers go to whoever used it. */
export type PacketIds = {
  /** `collision`: another app used it. */
  note(id: number, app: number, now: number): 'new' | 'repeated' | 'collision'
  /** The app that sent this packet; null: none. */
  ownerOf(id: number, now: number): number | null
  /** What `from` sent now belongs to `to`: the same app under a new connection. */
  hand(from: number, to: number): void
}

export function createPacketIds(): PacketIds {
  const known = new Map<number, { readonly app: number; readonly at: number }>()
  const find = (id: number, now: number) => {
    const found = known.get(id)
    return found !== undefined && now - found.at < REMEMBERED_MS ? found : null
  }
  return {
    note(id, app, now) {
      const found = find(id, now)
      if (found !== null) return found.app === app ? 'repeated' : 'collision'
      known.delete(id)
      known.set(id, { app, at: now })
      const [oldest] = known.keys()
      if (known.size > MAX_IDS && oldest !== undefined) known.delete(oldest)
      return 'new'
    },
    ownerOf: (id, now) => find(id, now)?.app ?? null,
    hand(from, to) {
      for (const [id, { app, at }] of known) if (app === from) known.set(id, { app: to, at })
    },
  }
}
