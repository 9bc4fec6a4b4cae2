import { describeScenarios } from '../contract/scenarios.ts'
import { SCENARIO_ENV } from '../contract/service.ts'
import { openWorkerd } from './workerd.ts'

describeScenarios('workerd and D1', () => openWorkerd(SCENARIO_ENV))
