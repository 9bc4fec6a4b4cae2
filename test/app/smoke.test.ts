import { expect, test } from 'vitest'
import { auditRows, createTestApp } from '../support/app.ts'

test('the administrator signs in, makes a user, and each sees what they may', async () => {
  const app = await createTestApp()
  const admin = await app.admin()
  const user = await app.user('anna', { nodes: { read: true, write: false } })
  expect((await admin.send('GET', '/api/users')).status).toBe(200)
  expect((await user.send('GET', '/api/users')).status).toBe(403)
  expect(auditRows(app).map(({ action }) => action)).toContain('user_created')
})
