import type * as z from 'zod'
import { serviceState, type STATE_NAMES } from '../../../db/schema.ts'
import { prepareOnce, type Store } from '../../../db/store.ts'

type Name = (typeof STATE_NAMES)[number]

export const stateQueries = prepareOnce((db) => ({
  all: db.select({ stateName: serviceState.name, state: serviceState.value }).from(serviceState).prepare(),
}))

type Row = { readonly stateName: Name; readonly state: string }

/** One of the rows; null: there is none, or this version cannot read it. */
export function stateOf<T>(rows: readonly Row[], name: Name, schema: z.ZodType<T>): T | null {
  const row = rows.find(({ stateName }) => stateName === name)
  return row === undefined ? null : (schema.safeParse(JSON.parse(row.state)).data ?? null)
}

export async function readState<T>(store: Store, name: Name, schema: z.ZodType<T>): Promise<T | null> {
  return stateOf(await stateQueries(store).all.all(), name, schema)
}

export async function keepState({ db }: Store, name: Name, state: unknown, now: number): Promise<void> {
  const value = JSON.stringify(state)
  await db
    .insert(serviceState)
    .values({ name, value, updatedAt: now })
    .onConflictDoUpdate({ target: serviceState.name, set: { value, updatedAt: now } })
    .run()
}
