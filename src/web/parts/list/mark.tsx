import { Icon } from '../icon.tsx'

/** A symbol with its meaning in words, for users who point at it or cannot see it. */
export function Mark({ icon, words, tone = 'faint' }: Props) {
  return (
    <span class={tone} title={words}>
      <Icon name={icon} />
      <span class="sr-only">{words}</span>
    </span>
  )
}

type Props = {
  readonly icon: 'lock' | 'muted' | 'shield' | 'warning'
  readonly words: string
  readonly tone?: 'faint' | 'good' | 'bad'
}
