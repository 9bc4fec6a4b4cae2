import type { CollectorInfo } from '../../app/mesh/collector/state.ts'
import type { LinkInfo, Radio } from '../../app/mesh/radios/radio.ts'
import * as z from 'zod'
import { AppError } from '../../app/http/errors.ts'
import type { LoraSettings } from '../../meshtastic/airtime.ts'
import type { InstancesFile } from './file.ts'
import type { HandOver } from './hand-over.ts'
import type { Lease } from './lease.ts'

const NOBODY = 'no instance has the radios at the moment'

/** State that the instance with the radios stores for the others. */
type State = {
  readonly links: readonly LinkInfo[]
  readonly waiting: number
  readonly sending: number
  readonly collector: CollectorInfo | null
  readonly lora: LoraSettings | null
}

const NOTHING: State = { links: [], waiting: 0, sending: 0, collector: null, lora: null }

// Written by an instance of the same version.
const stateSchema = z.custom<State>((value) => typeof value === 'object' && value !== null)

export type RadioState = {
  /** Stores the state of the radios for the others, if it has changed. */
  write(radio: Radio): void
  /** Reads the state stored by the instance with the radios. */
  read(): void
  current(): State
}

export function shareState({ sqlite, id }: InstancesFile, lease: Lease): RadioState {
  // The statement stores nothing if this instance has lost the lease meanwhile.
  const save = sqlite.prepare(
    `insert into state (id, token, body) select 1, token, @body from lease where owner = @id and token = @token
    on conflict do update set token = excluded.token, body = excluded.body`,
  )
  const load = sqlite.prepare<[], { token: number; body: string }>('select token, body from state')
  let written = ''
  let found = { token: -1, state: NOTHING }
  return {
    write(radio) {
      const state: State = {
        links: radio.links(),
        waiting: radio.waiting(),
        sending: radio.sending(),
        collector: radio.collector(),
        lora: radio.lora(),
      }
      const body = JSON.stringify(state)
      const token = lease.token()
      const key = `${token} ${body}`
      if (key === written) return
      save.run({ body, id, token })
      written = key
    },
    read() {
      const row = load.get()
      if (row !== undefined) found = { token: row.token, state: stateSchema.parse(JSON.parse(row.body)) }
    },
    current() {
      const owner = lease.owner()
      if (owner !== null && owner.token === found.token) return found.state
      const links = found.state.links.map((link) => ({ ...link, state: 'waiting' as const, reason: NOBODY }))
      return { ...found.state, links }
    },
  }
}

/** The radios: those of this process, or the stored state of another instance's. */
export function sharedRadio(needs: {
  /** Null while another instance has them. */
  readonly own: () => Radio | null
  /** Also false in a process that was suspended for a long time and has not yet noticed that it lost the radios. */
  readonly isOnDuty: () => boolean
  readonly state: RadioState
  readonly handOver: HandOver
  readonly forgetNode: (nodeNum: number) => void
  readonly markNode: (nodeNum: number) => void
}): Radio {
  const { own, state, handOver } = needs
  return {
    links: () => own()?.links() ?? state.current().links,
    devices: () => own()?.devices() ?? [],
    get remote() {
      return own()?.remote
    },
    waiting: () => own()?.waiting() ?? state.current().waiting,
    sending: () => own()?.sending() ?? state.current().sending,
    collector: () => {
      const radio = own()
      return radio === null ? state.current().collector : radio.collector()
    },
    hearings: (nodeNum) => own()?.hearings(nodeNum) ?? [],
    lora: () => {
      const radio = own()
      return radio === null ? state.current().lora : radio.lora()
    },
    reserve(kind, asked) {
      const radio = own()
      if (radio === null) throw new AppError('radio_unavailable', 'Another instance has the radios')
      return radio.reserve(kind, asked)
    },
    withdraw: (isStale) => own()?.withdraw(isStale),
    applyConnections: async () => own()?.applyConnections?.(),
    virtualNodes: () => own()?.virtualNodes?.() ?? new Map(),
    sendingOf: (source) => own()?.sendingOf?.(source) ?? 0,
    forgetNode(nodeNum) {
      const radio = own()
      if (radio === null) needs.forgetNode(nodeNum)
      else radio.forgetNode?.(nodeNum)
    },
    markNode(nodeNum) {
      const radio = own()
      if (radio === null) needs.markNode(nodeNum)
      else radio.markNode?.(nodeNum)
    },
    ownUser: (source) => own()?.ownUser?.(source) ?? null,
    isHandedOver: handOver.isHandedOver,
    elsewhere: (c) => {
      if ((own() !== null && needs.isOnDuty()) || handOver.isHandedOver(c)) return null
      // Reading also works without the radios; sending waits until an instance takes over.
      if (c.req.method === 'GET' && !handOver.hasTaker()) return null
      return () => handOver.ask(c)
    },
  }
}
