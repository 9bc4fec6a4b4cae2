import { describeAccounts } from '../../../contract/oidc/account-scenarios.ts'
import { describeCertified } from '../../../contract/oidc/certified-scenarios.ts'
import { describeEnding } from '../../../contract/oidc/ending-scenarios.ts'
import { describeFirstAdmin } from '../../../contract/oidc/first-admin-scenarios.ts'
import { describeGroups } from '../../../contract/oidc/group-scenarios.ts'
import { describeLinking } from '../../../contract/oidc/linking-scenarios.ts'
import { describeMixUp } from '../../../contract/oidc/mix-up-scenarios.ts'
import { describeProviders } from '../../../contract/oidc/provider-scenarios.ts'
import { describeOidc } from '../../../contract/oidc/scenarios.ts'
import type { OpenOidcService } from '../../../contract/oidc/service.ts'
import { describeSeveralLinks } from '../../../contract/oidc/several-links-scenarios.ts'
import { describeTests } from '../../../contract/oidc/test-scenarios.ts'
import { createTestApp } from '../../../support/app.ts'

const open: OpenOidcService = async (env) => {
  const app = await createTestApp({ env, ports: { now: Date.now } })
  return {
    send: (path, init) => app.request(path, init),
    sql: async (query) => {
      const statement = app.store.sqlite.prepare(query)
      if (!statement.reader) statement.run()
      return statement.reader ? statement.all().map((row) => ({ ...Object(row) })) : []
    },
    logged: () => app.logged,
    close: () => app.close(),
  }
}

describeOidc('Node', open)
describeProviders('Node', open)
describeMixUp('Node', open)
describeLinking('Node', open)
describeSeveralLinks('Node', open)
describeTests('Node', open)
describeFirstAdmin('Node', open)
describeEnding('Node', open)
describeAccounts('Node', open)
describeGroups('Node', open)
describeCertified('Node', open)
