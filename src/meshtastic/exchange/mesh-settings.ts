import { clone, isMessage, type JsonObject } from '@bufbuild/protobuf'
import type { RawSection } from '../config/sections.ts'
import { viewSection } from '../config/values.ts'
import { type Config_LoRaConfig, Config_LoRaConfig_RegionCode, Config_LoRaConfigSchema } from '../gen/config_pb.ts'

/** LoRa settings of a single radio, its hardware or its owner: they neither come with channels nor change with them. */
const OWN = ['ignoreIncoming', 'sx126xRxBoostedGain', 'paFanDisabled', 'femLnaMode', 'serialHalOnly'] as const

/** The LoRa settings of a radio as they go with its channels; null if it did not report them. */
export function sharedLora(sections: ReadonlyMap<string, RawSection>): Config_LoRaConfig | null {
  const message = sections.get('lora')?.parts[0]?.message
  if (!isMessage(message, Config_LoRaConfigSchema)) return null
  const shared = clone(Config_LoRaConfigSchema, message)
  shared.ignoreIncoming = []
  return shared
}

/** The values that a radio takes over. Without a region it keeps its own: with none it would not transmit. */
export function takenLora(lora: Config_LoRaConfig): JsonObject {
  const section: RawSection = {
    section: 'lora',
    kind: 'config',
    parts: [{ prefix: '', schema: Config_LoRaConfigSchema, message: lora }],
  }
  const { values } = viewSection(section)
  const left: ReadonlySet<string> = new Set([
    ...OWN,
    ...(lora.region === Config_LoRaConfig_RegionCode.UNSET ? ['region'] : []),
  ])
  return Object.fromEntries(Object.entries(values).filter(([name]) => !left.has(name)))
}
