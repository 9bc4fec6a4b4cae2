import { expect, test } from 'vitest'
import { auditOf, type Client, createClient, makeUser, refusal, signIn } from '../service.ts'

/** The audit log and its connection to the changes it records. */
export function auditScenarios(admin: () => Client): void {
  test('the log is for administrators, newest first, in pages', async () => {
    const id = await makeUser(admin(), 'gina')
    for (const name of ['Gina 1', 'Gina 2', 'Gina 3']) {
      await admin().send('PUT', `/api/users/${id}`, { displayName: name })
    }
    const page = async (query: string) =>
      Object((await admin().send('GET', `/api/audit?action=user_updated&q=gina&limit=2${query}`)).body)
    const first = await page('')
    const second = await page(`&cursor=${first.nextCursor}`)
    const names = [...first.entries, ...second.entries].map((entry) => entry.details.after.displayName)
    expect(names).toEqual(['Gina 3', 'Gina 2', 'Gina 1'])
    expect([first.nextCursor, second.nextCursor]).toEqual([expect.any(Number), null])
    expect(first.entries[0]).toMatchObject({ username: 'admin', resource: 'users', requestId: expect.any(String) })
    const gina = await signIn(admin().service, 'gina')
    expect(await gina.send('GET', '/api/audit')).toMatchObject(refusal(403, 'admin_required'))
    expect(await admin().send('GET', '/api/audit?limit=501')).toMatchObject(refusal(400, 'invalid_request'))
  })

  test('an export contains every matching entry, and no cell that a spreadsheet would execute', async () => {
    const attempt = { username: '=1+1', password: 'whatever it is' }
    await createClient(admin().service).send('POST', '/api/auth/login', attempt)
    const failures = await auditOf(admin(), 'login_failed')
    const csv = await admin().send('GET', '/api/audit/export?format=csv&action=login_failed')
    const ndjson = await admin().send('GET', '/api/audit/export?format=ndjson&action=login_failed')
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="audit.csv"')
    expect(csv.body).toContain(",'=1+1,")
    expect(String(csv.body).trim().split('\r\n')).toHaveLength(failures.length + 1)
    expect(
      String(ndjson.body)
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(failures)
  })

  test('no change happens without its entry', async () => {
    const id = await makeUser(admin(), 'hanna')
    const { sql } = admin().service
    const before = await sql('select * from user_permissions order by user_id, resource')
    await sql("create trigger no_audit before insert on audit_log begin select raise(abort, 'the log is full'); end")
    try {
      const broken = [
        await admin().send('PUT', `/api/users/${id}`, { displayName: 'Nobody knows' }),
        await admin().send('PUT', `/api/users/${id}/admin`, { isAdmin: true }),
        await admin().send('PUT', `/api/users/${id}/permissions`, {
          permissions: { nodes: { read: false, write: false } },
        }),
        await admin().send('DELETE', `/api/users/${id}`),
      ]
      expect(broken.map(({ status }) => status)).toEqual([500, 500, 500, 500])
      expect(JSON.stringify(broken.map(({ body }) => body))).not.toContain('the log is full')
    } finally {
      await sql('drop trigger no_audit')
    }
    const after = await admin().send('GET', `/api/users/${id}`)
    expect(after.body).toMatchObject({ user: { displayName: null, isAdmin: false, isActive: true } })
    expect(await sql('select * from user_permissions order by user_id, resource')).toEqual(before)
  })

  test('no entry is written without its change', async () => {
    const id = await makeUser(admin(), 'iris')
    const count = async () => (await auditOf(admin(), 'user_updated')).length
    const before = await count()
    expect((await admin().send('PUT', `/api/users/${id}`, { username: 'admin' })).status).toBe(409)
    expect((await admin().send('PUT', `/api/users/${id}`, { username: 'iris' })).status).toBe(200)
    expect(await count()).toBe(before)
  })

  test('the database itself refuses to change or delete an entry', async () => {
    const { sql } = admin().service
    await expect(sql("update audit_log set action = 'nothing'")).rejects.toThrow('append-only')
    await expect(sql('delete from audit_log')).rejects.toThrow('append-only')
    const other = "values (1, 0, 'somebody', 'nothing', 'users', '{}')"
    for (const verb of ['insert or replace', 'replace', 'insert or ignore', 'insert']) {
      const columns = '(id, timestamp, username, action, resource, details)'
      await expect(sql(`${verb} into audit_log ${columns} ${other}`)).rejects.toThrow('append-only')
    }
  })

  test('each entry is sealed once, and verifying finds the log intact up to the newest one', async () => {
    const { sql } = admin().service
    await makeUser(admin(), 'jana')
    const [newest] = await sql('select max(id) as id, count(*) as n from audit_log')
    const { status, body } = await admin().send('GET', '/api/audit/verify')
    expect([status, body]).toEqual([
      200,
      {
        entries: newest?.['n'],
        until: { id: newest?.['id'], timestamp: expect.any(Number), hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
        unsealed: 0,
        broken: null,
        trimmed: null,
        newestId: newest?.['id'],
        next: null,
      },
    ])
    const [first] = Object((await admin().send('GET', '/api/audit?limit=1')).body).entries
    expect(first).toMatchObject({ id: newest?.['id'], hash: Object(body).until.hash })
    await expect(sql('update audit_log set hash = null')).rejects.toThrow('append-only')
    await expect(sql(`update audit_log set hash = '${'0'.repeat(64)}'`)).rejects.toThrow('append-only')
    await expect(sql('delete from audit_chain')).rejects.toThrow('only grows')
    await expect(sql('update audit_chain set sealed_id = 1')).rejects.toThrow('only grows')
    await expect(sql('update audit_chain set trimmed_id = 1')).rejects.toThrow('only grows')
    await expect(sql('delete from audit_log where id = 1')).rejects.toThrow('append-only')
  })
}
