import { api, ask } from '../../api.ts'
import { useLoad } from '../../state/load.ts'
import { isInRadio } from '../../state/mesh/nodes.ts'
import { can } from '../../state/session.ts'
import { t } from '../../strings.ts'

export type Channels = {
  /** Channel indexes in use; empty if unknown. */
  readonly used: readonly number[]
  name(index: number): string
}

/** The names of the radio's channels, as far as the viewer may see them. */
export function useChannels(): Channels {
  const { data } = useLoad(async () => (can('messages', 'read') ? (await ask(api.channels.$get())).channels : []), [])
  const all = data.value ?? []
  return {
    used: all.flatMap(({ index, role }) => (role === 'DISABLED' || !isInRadio(index) ? [] : [index])),
    name: (index) => all.find((one) => one.index === index && one.name !== '')?.name ?? t.messages.channel(index),
  }
}
