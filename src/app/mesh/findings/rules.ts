import { FINDING_RULES } from '../../../shared/mesh/finding-rules.ts'
import { battery } from './rules/battery.ts'
import { busy } from './rules/busy.ts'
import { chatty } from './rules/chatty.ts'
import { clock } from './rules/clock.ts'
import { depends } from './rules/depends.ts'
import { firmware } from './rules/firmware.ts'
import { hops } from './rules/hops.ts'
import { key } from './rules/key.ts'
import { oneWay } from './rules/one-way.ts'
import { onlyGateway } from './rules/only-gateway.ts'
import { precise } from './rules/precise.ts'
import { regionSilent } from './rules/region-silent.ts'
import { restarts } from './rules/restarts.ts'
import { routers } from './rules/routers.ts'
import type { Rule } from './rule.ts'

const ALL = [
  depends,
  oneWay,
  routers,
  chatty,
  battery,
  restarts,
  clock,
  key,
  hops,
  busy,
  onlyGateway,
  regionSilent,
  firmware,
  precise,
]

/** All rules, in the order of their names. */
export const RULES: readonly Rule[] = FINDING_RULES.flatMap((name) => ALL.find((rule) => rule.name === name) ?? [])
