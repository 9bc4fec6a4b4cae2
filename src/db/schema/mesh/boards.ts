import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { BOARD_SHARINGS } from '../../../shared/mesh/boards.ts'
import { users } from '../accounts/accounts.ts'

/** Charts that a user put together. A board belongs to its owner, and is deleted with the account. */
export const boards = sqliteTable(
  'boards',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    /** Random: finds the row that was just created. */
    uid: text('uid').notNull().unique(),
    ownerId: integer('owner_id')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    name: text('name').notNull(),
    /** Its place among the boards of its owner. */
    position: integer('position').notNull(),
    sharing: text('sharing', { enum: BOARD_SHARINGS }).notNull(),
    /** JSON: what is drawn; never measurements. */
    charts: text('charts').notNull(),
  },
  (t) => [index('boards_owner').on(t.ownerId), index('boards_sharing').on(t.sharing)],
)

/** The users with whom a board is shared by name. */
export const boardReaders = sqliteTable(
  'board_readers',
  {
    boardId: integer('board_id')
      .notNull()
      .references(() => boards.id, { onDelete: 'cascade' }),
    /** As the owner typed it. */
    name: text('name').notNull(),
    /** Null: no user had this name, or the user is deleted. The owner does not learn which names exist. */
    userId: integer('user_id').references(() => users.id, { onDelete: 'set null' }),
  },
  (t) => [primaryKey({ columns: [t.boardId, t.name] }), index('board_readers_user').on(t.userId)],
)
