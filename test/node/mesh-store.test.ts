import { afterAll } from 'vitest'
import { meshStoreContract } from '../contract/mesh-store.ts'
import { textSearchContract } from '../contract/text-search.ts'
import { trafficHoursContract } from '../contract/traffic-hours.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const store = openMemoryStore()
afterAll(() => store.close())

meshStoreContract('SQLite', () => store)
textSearchContract('SQLite', () => store, 150)
trafficHoursContract('SQLite', () => store, 60)
