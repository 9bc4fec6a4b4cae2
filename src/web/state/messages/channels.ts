import { api, ask } from '../../api.ts'
import { t } from '../../strings.ts'
import { useLoad } from '../load.ts'
import { isInRadio } from '../mesh/nodes.ts'

export type Channels = {
  /** The numbers of channels in use. */
  readonly used: readonly number[]
  name(index: number): string
  /** Whether the radio would send a text on this channel. */
  isOn(index: number): boolean
}

/** The names of the radio's channels. */
export function useChannels(): Channels {
  const { data } = useLoad(() => ask(api.channels.$get()), [])
  const all = data.value?.channels ?? []
  const used = all.flatMap(({ index, role }) => (role === 'DISABLED' ? [] : [index]))
  const inRadio = used.filter(isInRadio)
  return {
    used,
    // Until the radio has reported its channels, all are offered, and the radio itself decides.
    isOn: (index) => isInRadio(index) && (inRadio.length === 0 || inRadio.includes(index)),
    name: (index) => all.find((one) => one.index === index && one.name !== '')?.name ?? t.messages.channel(index),
  }
}
