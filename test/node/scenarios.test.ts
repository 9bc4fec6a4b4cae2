import { describeScenarios } from '../contract/scenarios.ts'
import { SCENARIO_ENV } from '../contract/service.ts'
import { openNodeService } from '../support/servers/node-service.ts'

describeScenarios('Node and SQLite', () => openNodeService(SCENARIO_ENV))
