import { describeCertified } from '../contract/oidc/certified-scenarios.ts'
import { describeEnding } from '../contract/oidc/ending-scenarios.ts'
import { describeFirstAdmin } from '../contract/oidc/first-admin-scenarios.ts'
import { describeGroups } from '../contract/oidc/group-scenarios.ts'
import { describeLinking } from '../contract/oidc/linking-scenarios.ts'
import { describeMixUp } from '../contract/oidc/mix-up-scenarios.ts'
import { describeProviders } from '../contract/oidc/provider-scenarios.ts'
import { describeOidc } from '../contract/oidc/scenarios.ts'
import { describeSeveralLinks } from '../contract/oidc/several-links-scenarios.ts'
import { describeTests } from '../contract/oidc/test-scenarios.ts'
import { openOidcWorkerd } from './oidc-workerd.ts'

describeOidc('workerd', openOidcWorkerd)
describeProviders('workerd', openOidcWorkerd)
describeMixUp('workerd', openOidcWorkerd)
describeLinking('workerd', openOidcWorkerd)
describeSeveralLinks('workerd', openOidcWorkerd)
describeTests('workerd', openOidcWorkerd)
describeFirstAdmin('workerd', openOidcWorkerd)
describeEnding('workerd', openOidcWorkerd)
describeGroups('workerd', openOidcWorkerd)
describeCertified('workerd', openOidcWorkerd)
