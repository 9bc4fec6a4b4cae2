/** One that is wanted. `key` changes whenever it has to be opened anew. */
export type Wanted<Configured> = { readonly key: string; readonly configured: Configured }

type Open<Opened> = { key: string; readonly opened: Opened }

/** The open connections of a process, by name. */
export type LinkSet<Configured, Opened> = {
  /** In the order in which they are wanted. */
  all(): readonly Opened[]
  /** Closes what is not wanted any more or has another key, and opens what is new. The others are not touched. */
  want(all: readonly Wanted<Configured>[]): { readonly made: readonly Opened[]; readonly closed: readonly string[] }
  /** What the key of an open connection is from now on. */
  rekey(name: string, key: string): void
}

export function createLinkSet<Configured extends { readonly name: string }, Opened>(
  open: (configured: Configured) => Opened,
  close: (opened: Opened) => void,
): LinkSet<Configured, Opened> {
  let links = new Map<string, Open<Opened>>()
  return {
    all: () => [...links.values()].map(({ opened }) => opened),
    want(all) {
      const order = all.map(({ configured: { name } }) => name)
      const placeOf = (name: string) => order.indexOf(name)
      const closed: string[] = []
      const keys = new Map(all.map(({ key, configured }) => [configured.name, key]))
      for (const [name, { key, opened }] of links) {
        if (keys.get(name) === key) continue
        links.delete(name)
        close(opened)
        closed.push(name)
      }
      const made: Opened[] = []
      for (const { key, configured } of all) {
        if (links.has(configured.name)) continue
        const opened = open(configured)
        links.set(configured.name, { key, opened })
        made.push(opened)
      }
      links = new Map([...links].toSorted(([a], [b]) => placeOf(a) - placeOf(b)))
      return { made, closed }
    },
    rekey(name, key) {
      const found = links.get(name)
      if (found !== undefined) found.key = key
    },
  }
}
