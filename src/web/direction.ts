import { type ComponentChild, type ComponentChildren, h, options } from 'preact'
import { ISOLATED, needsIsolation } from './isolate.ts'

/** Characters that start or end another writing direction. They also affect the rest of the line. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/gu
const ATTRIBUTES = ['title', 'aria-label', 'placeholder', 'alt'] as const
/** Their text is not divided. */
const PLAIN = ['option', 'textarea', 'title', 'text']

/**
 * Removes from all rendered text the characters that would change the direction of the text around it. Otherwise
 * whoever names a channel, a rule, a token or a user could change what the page says. What has letters of the other
 * direction becomes a `<bdi>`. Fields keep their values. Call it before the first rendering.
 */
export function keepDirection(isRightToLeft: boolean): void {
  const drawn = (text: string): ComponentChildren => {
    const parts = text.split(ISOLATED).filter((part) => part !== '')
    if (parts.length <= 1 && !needsIsolation(text, isRightToLeft)) return withoutTurns(text)
    // One element, because each part would be an item of its own in a flexible box.
    return h('bdi', null, ...(parts.length === 1 ? parts : parts.map((part) => isolate(part))))
  }
  const next = options.vnode
  options.vnode = (vnode) => {
    const { type } = vnode
    if (typeof type === 'string') {
      const props: { [name: string]: unknown; children?: ComponentChildren } = vnode.props
      const change = type === 'bdi' ? withoutTurns : PLAIN.includes(type) ? keepIsolates : drawn
      if (props.children !== undefined) props.children = straight(props.children, change)
      for (const name of ATTRIBUTES) {
        const value = props[name]
        if (typeof value === 'string') props[name] = keepIsolates(value)
      }
    }
    next?.(vnode)
  }
}

/** The same children if there is nothing to change. */
function straight(children: ComponentChildren, change: (text: string) => ComponentChildren): ComponentChildren {
  if (typeof children === 'string') return change(children)
  if (!Array.isArray(children)) return children
  const changed = children.map((child: ComponentChild): ComponentChildren => straight(child, change))
  return changed.some((child, index) => child !== children[index]) ? changed : children
}

const isolate = (part: string) => (ISOLATED.test(part) ? h('bdi', null, part) : part)

const keepIsolates = (text: string) =>
  text
    .split(ISOLATED)
    .map((part) => (ISOLATED.test(part) ? part : withoutTurns(part)))
    .join('')

/** The text without any of these marks. */
export function withoutTurns(text: string): string {
  return text.replace(TURNING, '')
}
