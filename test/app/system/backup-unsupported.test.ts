import { expect, test } from 'vitest'
import { createTestApp } from '../../support/app.ts'

test('a runtime without backups says so after the access check', async () => {
  const other = await createTestApp()
  const root = await other.admin()
  const user = await other.user('anna')
  for (const [method, path, data] of [
    ['POST', ''],
    ['GET', ''],
    ['GET', '/settings'],
    ['PUT', '/settings', { enabled: true, maxBackups: 1, backupTime: '01:00' }],
    ['GET', '/download/2026-01-15_120000'],
    ['POST', '/2026-01-15_120000/verify'],
    ['DELETE', '/2026-01-15_120000'],
    ['GET', '/2026-01-15_120000/restore'],
    ['POST', '/2026-01-15_120000/restore'],
    ['GET', '/../restore'],
    ['DELETE', '/../restore'],
    ['DELETE', '/../restore/outcome'],
  ] as const) {
    const answer = await root.send(method, `/api/system/backup${path}`, data)
    expect([method, path, answer.status, Object(await answer.json()).code]).toStrictEqual([
      method,
      path,
      501,
      'unsupported_on_this_runtime',
    ])
    expect((await user.send(method, `/api/system/backup${path}`, data)).status).toBe(403)
    expect((await other.client().send(method, `/api/system/backup${path}`, data)).status).toBe(401)
  }
  other.close()
})
