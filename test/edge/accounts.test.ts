import { describeAccounts } from '../contract/oidc/account-scenarios.ts'
import { openOidcWorkerd } from './oidc-workerd.ts'

// A password costs half a second of a core there.
describeAccounts('workerd', openOidcWorkerd, { browsers: 6 })
