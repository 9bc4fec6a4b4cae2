import type Database from 'better-sqlite3'
import { type Declared, declaredColumns, type Rules, rulesOf } from '../../../app/system/backup/format/column-rules.ts'

const TABLES = "select name from pragma_table_list where schema = 'main' and type = 'table'"

/** The permitted values of a database's columns. */
export function columnRules(database: Database.Database): Rules {
  return rulesOf(database.prepare<[], Declared>(declaredColumns(TABLES)).all())
}
