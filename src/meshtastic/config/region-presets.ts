import { Config_LoRaConfig_ModemPresetSchema, Config_LoRaConfig_RegionCodeSchema } from '../gen/config_pb.ts'
import type { LoRaRegionPresetMap } from '../gen/stream_pb.ts'
import { enumName } from '../enum-name.ts'
import type { RawSection } from './sections.ts'
import { listLeaves, readLeaf } from './values.ts'

/** Why a region may not be used with a preset; null: it may, or the radio (firmware 2.8 and later) did not say. */
export function findPresetProblem(map: LoRaRegionPresetMap | null, section: RawSection): string | null {
  if (map === null || section.section !== 'lora') return null
  const values = new Map(listLeaves(section).map((leaf) => [leaf.path, readLeaf(leaf)]))
  if (values.get('usePreset') !== true) return null
  const region = map.regionGroups.find(
    (each) => enumName(Config_LoRaConfig_RegionCodeSchema, each.region) === values.get('region'),
  )
  const group = region === undefined ? undefined : map.groups[region.groupIndex]
  if (group === undefined || group.presets.length === 0) return null
  const names = group.presets.map((preset) => enumName(Config_LoRaConfig_ModemPresetSchema, preset))
  return names.some((name) => name === values.get('modemPreset'))
    ? null
    : `in this region the radio only allows ${names.join(', ')}`
}
