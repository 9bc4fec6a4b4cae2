import { and, type SQL } from 'drizzle-orm'
import { namesOf } from '../shared/names.ts'

/** Conditions of a list by name, for `prepareShapes`: one query for each set of them that is asked for. */
export type Filters<Name extends string> = {
  readonly names: readonly Name[]
  /** The names for which there is a value, in one text. */
  shapeOf(values: Readonly<Partial<Record<string, unknown>>>): string
  /** That all conditions of a shape hold. Other words in it are ignored. */
  whereOf(shape: string): SQL | undefined
}

export function filtersOf<Name extends string>(conditions: Readonly<Record<Name, SQL | undefined>>): Filters<Name> {
  const names = namesOf(conditions)
  return {
    names,
    shapeOf: (values) => names.filter((name) => values[name] !== undefined).join(' '),
    whereOf: (shape) => {
      const asked = shape.split(' ')
      return and(...names.filter((name) => asked.includes(name)).map((name) => conditions[name]))
    },
  }
}
