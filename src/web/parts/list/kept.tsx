import { Component, type ComponentChildren } from 'preact'

type Props = {
  /** What `draw` depends on. */
  by: readonly unknown[]
  draw(): ComponentChildren
}

/**
 * Renders again only when something in `by` has changed, for the rows of a long list. A remembered element would do the
 * same, but keep all rows of the list in memory that were there when it was first rendered.
 */
export class Kept extends Component<Props> {
  override shouldComponentUpdate({ by }: Props): boolean {
    return by.some((value, index) => value !== this.props.by[index])
  }

  override render({ draw }: Props): ComponentChildren {
    return draw()
  }
}
