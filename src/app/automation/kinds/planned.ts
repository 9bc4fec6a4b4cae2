import { chooseRadio } from '../../mesh/radios/choose-radio.ts'
import { readTokens } from '../facts.ts'
import { render } from '../template.ts'
import type { View } from '../../accounts/access/visible.ts'
import type { Ports } from '../../base/context.ts'

/** The data that a kind needs to plan its packets. `view`: of the viewer who only wants to know; absent: they are sent. */
export type Needs = Pick<Ports, 'store' | 'radio'> & { readonly view?: View }

/** A packet that a rule would send, and the name of the radio that sends it; null: there is none. */
export type Planned = { readonly radio: string | null } & (
  | {
      readonly kind: 'text' | 'tapback'
      readonly text: string
      readonly to: number
      readonly channel: number
      /** ID of the packet that it answers; null: none. */
      readonly replyId: number | null
    }
  | { readonly kind: 'traceroute'; readonly to: number }
)

/** A text with its tokens replaced, as the best radio for its destination would send it. */
export async function planText(
  needs: Needs,
  rule: { readonly timeZone: string },
  text: string,
  { to, channel }: { readonly to: number; readonly channel: number },
  now: number,
): Promise<Planned> {
  const radio = await chooseRadio(needs, { to, channel, replyId: null })
  return {
    kind: 'text',
    text: render(text, await readTokens(needs, rule, now, radio)),
    to,
    channel,
    replyId: null,
    radio,
  }
}

export async function planTraceroute(needs: Needs, to: number): Promise<Planned> {
  return { kind: 'traceroute', to, radio: await chooseRadio(needs, { to, channel: 0, replyId: null }) }
}
