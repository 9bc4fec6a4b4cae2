import { afterAll } from 'vitest'
import { openDatabase } from '../../src/node/database.ts'
import { meshStoreContract } from '../contract/mesh-store.ts'
import { textSearchContract } from '../contract/text-search.ts'

const store = openDatabase(':memory:')
afterAll(() => store.close())

meshStoreContract('SQLite', () => store)
textSearchContract('SQLite', () => store, 150)
