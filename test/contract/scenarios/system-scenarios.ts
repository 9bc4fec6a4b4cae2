import { expect, test } from 'vitest'
import { type Client, createClient, makeUser, refusal, signIn } from '../service.ts'

/** What administrators see of the service itself. */
export function systemScenarios(admin: () => Client): void {
  test('the state of the service is for administrators, and knows the size of its database', async () => {
    const answer = await admin().send('GET', '/api/system')
    const { disk, limitBytes, databaseBytes, roomBytes } = Object(answer.body).storage
    expect(answer.status).toBe(200)
    expect(databaseBytes).toBeGreaterThan(100_000)
    // A platform has a limit, and no disk.
    if (limitBytes !== null) expect([disk, roomBytes >= limitBytes - databaseBytes]).toStrictEqual([null, true])
    expect(answer.body).toMatchObject({ release: null, collector: null, links: expect.any(Array) })
    await makeUser(admin(), 'overseer')
    const overseer = await signIn(admin().service, 'overseer')
    expect(await overseer.send('GET', '/api/system')).toMatchObject(refusal(403, 'admin_required'))
    expect(await createClient(admin().service).send('GET', '/api/system')).toMatchObject(
      refusal(401, 'unauthenticated'),
    )
  })

  test('a failed sign-in is counted', async () => {
    const failed = async () => Object((await admin().send('GET', '/api/system')).body).signIns.failed
    const before = await failed()
    await createClient(admin().service).send('POST', '/api/auth/login', { username: 'overseer', password: 'wrong' })
    expect(await failed()).toBe(before + 1)
  })

  test('the metrics say the same', async () => {
    const { body } = await admin().send('GET', '/api/metrics')
    for (const name of [
      'mesh_build_info{version="',
      'mesh_problems{problem="disk_full",severity="error"} 0',
      'mesh_database_size_bytes ',
    ]) {
      expect(body).toContain(`\n${name}`)
    }
  })
}
