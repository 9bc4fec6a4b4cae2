import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Built, buildService, type Service, startService } from '../support/built/built-service.ts'
import { figure } from './figures.ts'

const SECONDS = 60
const ATTACKERS = 8
const PASSWORD = 'the first administrator'

let built: Built
let dir: string
let service: Service
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'mesh-lockout-'))
  built = buildService()
  service = await startService(built, { DATA_DIR: dir, ADMIN_PASSWORD: PASSWORD, TRUSTED_PROXIES: '127.0.0.1' })
})
afterAll(async () => {
  await service?.stop('SIGTERM')
  rmSync(dir, { recursive: true })
})

let addresses = 0

async function login(password: string, cookie?: string) {
  const n = ++addresses
  const sent = performance.now()
  const answer = await fetch(`${service.url}/api/auth/login`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      // Each attempt comes from another address.
      'x-forwarded-for': `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`,
      ...(cookie !== undefined && { cookie }),
    },
    body: JSON.stringify({ username: 'admin', password }),
  })
  await answer.text()
  const set = answer.headers.getSetCookie().find((line) => line.startsWith('mesh_browser='))
  return { status: answer.status, cookie: set?.split(';')[0], ms: performance.now() - sent }
}

test(`${ATTACKERS} attackers who guess the administrator's password for ${SECONDS} s lock out no known browser`, async () => {
  let { cookie } = await login(PASSWORD)
  const attempts = new Map<number, number>()
  const end = performance.now() + SECONDS * 1000
  const attackers = Array.from({ length: ATTACKERS }, async () => {
    while (performance.now() < end) {
      const { status } = await login('a wrong password')
      attempts.set(status, (attempts.get(status) ?? 0) + 1)
    }
  })
  const [known, unknown] = [
    { in: 0, refused: 0 },
    { in: 0, refused: 0 },
  ]
  const waits: number[] = []
  const administrator = (async () => {
    while (performance.now() < end) {
      const here = await login(PASSWORD, cookie)
      if (here.status === 200) {
        known.in++
        cookie = here.cookie
      } else known.refused++
      waits.push(here.ms)
    }
  })()
  await Promise.all([...attackers, administrator])
  for (let i = 0; i < 10; i++) {
    if ((await login(PASSWORD)).status === 200) unknown.in++
    else unknown.refused++
  }
  waits.sort((a, b) => a - b)
  figure('attempts of strangers by answer', JSON.stringify(Object.fromEntries(attempts)))
  figure("the administrator's sign-ins at a known browser", `${known.in}, refused ${known.refused}`)
  figure("the administrator's sign-ins at a new browser", `${unknown.in}, refused ${unknown.refused}`)
  figure(
    'a sign-in at the known browser takes, ms: median, longest',
    [waits[waits.length >> 1], waits.at(-1)].map(Number).map(Math.round).join(', '),
  )
  expect(attempts.get(401)).toBe(10)
  expect(attempts.get(429)).toBeGreaterThan(100)
  expect(known.refused).toBe(0)
  expect(known.in).toBeGreaterThan(1)
  expect(unknown).toEqual({ in: 0, refused: 10 })
})
