import { describeAccounts } from '../contract/oidc/account-scenarios.ts'
import { openOidcWorkerd } from './oidc-workerd.ts'

// Hashing a password takes half a second of CPU time there.
describeAccounts('workerd', openOidcWorkerd, { browsers: 6 })
