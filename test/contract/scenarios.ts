import { afterAll, beforeAll, describe } from 'vitest'
import { auditScenarios } from './scenarios/audit-scenarios.ts'
import { automationScenarios } from './scenarios/automation-scenarios.ts'
import { configurationScenarios } from './scenarios/configuration-scenarios.ts'
import { eventScenarios } from './scenarios/event-scenarios.ts'
import { factorScenarios } from './scenarios/factor-scenarios.ts'
import { ingestScenarios } from './scenarios/ingest-scenarios.ts'
import { meshScenarios } from './scenarios/mesh-scenarios.ts'
import { outliveScenarios } from './scenarios/outlive-scenarios.ts'
import { requestScenarios } from './scenarios/request-scenarios.ts'
import { ADMIN_PASSWORD, type Client, type Service, signIn } from './service.ts'
import { sharingScenarios } from './scenarios/sharing-scenarios.ts'
import { signInScenarios } from './scenarios/sign-in-scenarios.ts'
import { systemScenarios } from './scenarios/system-scenarios.ts'
import { userScenarios } from './scenarios/user-scenarios.ts'

/**
 * What every runtime must do, through its own HTTP server. `open` starts the service on an empty, migrated database
 * with `SCENARIO_ENV`.
 */
export function describeScenarios(runtime: string, open: () => Promise<Service>): void {
  describe(runtime, () => {
    let service: Service | undefined
    let client: Client | undefined
    const admin = (): Client => {
      if (client === undefined) throw new Error('the service did not start')
      return client
    }
    beforeAll(async () => {
      service = await open()
      client = await signIn(service, 'admin', ADMIN_PASSWORD)
    })
    afterAll(() => service?.close())
    describe('signing in', () => signInScenarios(admin))
    describe('second factors', () => factorScenarios(admin))
    describe('users', () => userScenarios(admin))
    describe('what outlives its right', () => outliveScenarios(admin))
    describe('audit', () => auditScenarios(admin))
    describe('the mesh', () => meshScenarios(admin))
    describe('automation', () => automationScenarios(admin))
    describe('settings of radios', () => configurationScenarios(admin))
    describe('collectors', () => ingestScenarios(admin))
    let eventsLater = () => {}
    describe('live events', () => {
      eventsLater = eventScenarios(admin)
    })
    describe('requests', () => requestScenarios(admin))
    describe('the service itself', () => systemScenarios(admin))
    describe('sharing', () => sharingScenarios(admin))
    describe('live events, later', () => eventsLater())
  })
}
