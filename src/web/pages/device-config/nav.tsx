import type { ComponentChildren } from 'preact'
import { Icon } from '../../parts/icon.tsx'
import { c, SECTIONS } from '../../strings/system/configuration.ts'
import type { Overview } from './model.ts'
import { sectionName } from './words.ts'

type Entry = Pick<Overview['sections'][number], 'section' | 'kind'>

/** The order in which people look for sections. */
const ORDER = Object.keys(SECTIONS)

/** Links to the sections of a radio, or of a node. `tag`: what is said beside one. */
export function SectionNav<E extends Entry>(props: {
  entries: readonly E[]
  pathOf(section: string): string
  chosen: string | null
  tag(entry: E): ComponentChildren
}) {
  const rank = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length)
  const all = props.entries.toSorted((a, b) => rank(a.section) - rank(b.section))
  const groups = [
    [c.groups.radio, all.filter(({ kind }) => kind !== 'moduleConfig')],
    [c.groups.modules, all.filter(({ kind }) => kind === 'moduleConfig')],
  ] as const
  const filled = groups.filter(([, entries]) => entries.length > 0)
  return (
    <nav class="sections" aria-label={c.sections}>
      {filled.map(([name, entries]) => (
        <div key={name}>
          <div class="nav-title">{name}</div>
          <ul>
            {entries.map((entry) => (
              <li key={entry.section}>
                <a
                  class="section-link"
                  href={props.pathOf(entry.section)}
                  aria-current={entry.section === props.chosen ? 'page' : undefined}
                >
                  <span class="grow clip" title={sectionName(entry.section)}>
                    {sectionName(entry.section)}
                  </span>
                  {props.tag(entry)}
                  <Icon name="next" />
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  )
}
