import { api, ask } from '../../api.ts'
import { useLoad } from '../../state/load.ts'
import { isInRadio } from '../../state/mesh.ts'
import { can } from '../../state/session.ts'
import { t } from '../../strings.ts'

export type Channels = {
  /** Slots that are in use; none when that is not known. */
  readonly used: readonly number[]
  name(index: number): string
}

/** What the radio calls its channels, as far as the viewer may know. */
export function useChannels(): Channels {
  const { data } = useLoad(async () => (can('messages', 'read') ? (await ask(api.channels.$get())).channels : []), [])
  const all = data.value ?? []
  return {
    used: all.flatMap(({ index, role }) => (role === 'DISABLED' || !isInRadio(index) ? [] : [index])),
    name: (index) => all.find((one) => one.index === index && one.name !== '')?.name ?? t.messages.channel(index),
  }
}
