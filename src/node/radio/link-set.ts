/** One that is wanted. `key` changes whenever it has to be opened anew. */
export type Wanted<Configured> = { readonly key: string; readonly configured: Configured }

type Open<Opened> = { key: string; readonly opened: Opened }

/** The open connections of a process, by name. */
export type LinkSet<Configured, Opened> = {
  /** In the order in which they are wanted. */
  all(): readonly Opened[]
  /** Closes what is not wanted any more or has another key, and opens what is new. The others are not touched. */
  want(all: readonly Wanted<Configured>[]): { readonly made: readonly Opened[] }
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
      const keys = new Map(all.map(({ key, configured }) => [configured.name, key]))
      for (const [name, { key, opened }] of links) {
        if (keys.get(name) === key) continue
        links.delete(name)
        close(opened)
      }
      const made: Opened[] = []
      const openNow = ({ key, configured }: Wanted<Configured>): Open<Opened> => {
        const opened = open(configured)
        made.push(opened)
        return { key, opened }
      }
      links = new Map(all.map((one) => [one.configured.name, links.get(one.configured.name) ?? openNow(one)]))
      return { made }
    },
    rekey(name, key) {
      const found = links.get(name)
      if (found !== undefined) found.key = key
    },
  }
}
