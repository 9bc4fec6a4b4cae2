import type { channels, sources } from '../../../db/schema.ts'

type Row = typeof channels.$inferSelect

/** A channel of one radio or broker. */
export type KnownChannel = Pick<Row, 'index' | 'name' | 'role' | 'identity' | 'lastHeard'> & {
  readonly source: string
  readonly kind: (typeof sources.$inferSelect)['kind']
}
