import { integer } from 'drizzle-orm/sqlite-core'

/** A column of 0 and 1. */
export const flag = (name: string) => integer(name, { mode: 'boolean' })
