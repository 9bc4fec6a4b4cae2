import { afterAll } from 'vitest'
import { openDatabase } from '../../src/node/database.ts'
import { storeContract } from '../contract/store.ts'

const store = openDatabase(':memory:')
afterAll(() => store.close())

storeContract('SQLite', () => store)
