import { type ComponentChild, type ComponentChildren, options } from 'preact'

/** Characters that start or end another writing direction. They also affect the rest of the line. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/gu
const ATTRIBUTES = ['title', 'aria-label', 'placeholder', 'alt'] as const

/**
 * Removes from all rendered text the characters that would change the direction of the text around it. Otherwise
 * whoever names a channel, a rule, a token or a user could change what the page says. Fields keep their values. Call it
 * before the first rendering.
 */
export function keepDirection(): void {
  const next = options.vnode
  options.vnode = (vnode) => {
    if (typeof vnode.type === 'string') {
      const props: { [name: string]: unknown; children?: ComponentChildren } = vnode.props
      if (props.children !== undefined) props.children = straight(props.children)
      for (const name of ATTRIBUTES) {
        const value = props[name]
        if (typeof value === 'string') props[name] = withoutTurns(value)
      }
    }
    next?.(vnode)
  }
}

/** The same children if there is nothing to remove. */
function straight(children: ComponentChildren): ComponentChildren {
  if (typeof children === 'string') return withoutTurns(children)
  if (!Array.isArray(children)) return children
  const drawn = children.map((child: ComponentChild): ComponentChildren => straight(child))
  return drawn.some((child, index) => child !== children[index]) ? drawn : children
}

/** The text without any of these marks. */
export function withoutTurns(text: string): string {
  return text.replace(TURNING, '')
}
