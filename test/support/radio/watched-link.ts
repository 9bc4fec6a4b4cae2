import type { LinkInfo } from '../../../src/app/mesh/radios/radio.ts'
import type { RadioEvent } from '../../../src/meshtastic/radio-event.ts'
import type { Link } from '../../../src/node/radio/link.ts'
import type { ReceivedEvent } from '../../../src/node/radio/session.ts'

/** Events that a link reports to its owner. */
export type LinkEvents = {
  onFrames(batch: readonly ReceivedEvent[]): void
  onState(info: LinkInfo): void
}

export type WatchedLink = Link & {
  readonly states: readonly LinkInfo[]
  readonly received: readonly ReceivedEvent[]
  /** The next state of this name, of those not yet requested. */
  until(state: LinkInfo['state']): Promise<LinkInfo>
  /** The first event that `matches`, past or future. */
  untilEvent(matches: (event: RadioEvent) => boolean): Promise<ReceivedEvent>
}

/** A link that records its events, not yet started. */
export function watchLink(make: (events: LinkEvents) => Link): WatchedLink {
  const states: LinkInfo[] = []
  const received: ReceivedEvent[] = []
  const wakers = new Set<() => void>()
  const wake = () => {
    for (const each of wakers) each()
  }
  const wait = <T>(find: () => T | null | undefined) =>
    new Promise<T>((resolve) => {
      const check = () => {
        const found = find()
        if (found === null || found === undefined) return
        wakers.delete(check)
        resolve(found)
      }
      wakers.add(check)
      check()
    })
  let asked = 0
  const link = make({
    onFrames(batch) {
      received.push(...batch)
      wake()
    },
    onState(info) {
      states.push(info)
      wake()
    },
  })
  const until = (state: LinkInfo['state']) =>
    wait(() => {
      const index = states.findIndex((info, at) => at >= asked && info.state === state)
      if (index === -1) return null
      asked = index + 1
      return states[index]
    })
  const untilEvent = (matches: (event: RadioEvent) => boolean) =>
    wait(() => received.find(({ event }) => matches(event)))
  return { ...link, states, received, until, untilEvent }
}
