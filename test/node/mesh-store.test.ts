import { afterAll } from 'vitest'
import { openDatabase } from '../../src/node/database.ts'
import { meshStoreContract } from '../contract/mesh-store.ts'

const store = openDatabase(':memory:')
afterAll(() => store.close())

meshStoreContract('SQLite', () => store)
