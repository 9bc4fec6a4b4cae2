import { describeOidc } from '../../../contract/oidc/scenarios.ts'
import { createTestApp } from '../../../support/app.ts'

describeOidc('Node', async (env) => {
  const app = await createTestApp({ env, ports: { now: Date.now } })
  return {
    send: (path, init) => app.request(path, init),
    sql: async (query) =>
      app.store.sqlite
        .prepare(query)
        .all()
        .map((row) => ({ ...Object(row) })),
    logged: () => app.logged,
    close: () => app.close(),
  }
})
