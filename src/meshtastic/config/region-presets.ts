import { Config_LoRaConfig_ModemPresetSchema, Config_LoRaConfig_RegionCodeSchema } from '../gen/config_pb.ts'
import type { LoRaRegionPresetMap } from '../gen/stream_pb.ts'
import { enumName } from '../enum-name.ts'
import type { SectionPlan } from './change.ts'
import type { RawSection } from './sections.ts'
import { listLeaves, readLeaf } from './values.ts'

/** What a radio (firmware 2.8 and later) allows in a region; names as in its settings. */
export type RegionPresets = {
  readonly region: string
  readonly presets: readonly string[]
  /** Only operators with an amateur radio licence may transmit there. */
  readonly licensedOnly: boolean
}

/** The regions that the radio restricts; in others, it allows all presets. */
export function listRegionPresets({ groups, regionGroups }: LoRaRegionPresetMap): RegionPresets[] {
  return regionGroups.flatMap(({ region, groupIndex }) => {
    const group = groups[groupIndex]
    if (group === undefined) return []
    const presets = group.presets.map((preset) => enumName(Config_LoRaConfig_ModemPresetSchema, preset))
    return [{ region: enumName(Config_LoRaConfig_RegionCodeSchema, region), presets, licensedOnly: group.licensedOnly }]
  })
}

/** Settings of LoRa that decide in which region and with which preset a radio transmits. */
const DECISIVE: ReadonlySet<string> = new Set(['region', 'usePreset', 'modemPreset'])

/** Why a change of the region or the preset is not allowed; null: it is. `owner`: the radio's section of that name. */
export function findPresetProblem(
  allowed: readonly RegionPresets[],
  { section, changes }: SectionPlan,
  owner: RawSection | undefined,
): { readonly field: string; readonly message: string } | null {
  if (section.section !== 'lora' || !changes.some(({ leaf }) => DECISIVE.has(leaf.path))) return null
  const values = valuesOf(section)
  const found = allowed.find(({ region }) => region === values.get('region'))
  if (found === undefined) return null
  if (found.licensedOnly && (owner === undefined || valuesOf(owner).get('isLicensed') !== true)) {
    return { field: 'region', message: 'this region is only for licensed operators: set isLicensed of owner first' }
  }
  const { presets } = found
  const isAllowed = presets.length === 0 || presets.some((name) => name === values.get('modemPreset'))
  return values.get('usePreset') !== true || isAllowed
    ? null
    : { field: 'modemPreset', message: `in this region the radio only allows ${presets.join(', ')}` }
}

function valuesOf(section: RawSection): ReadonlyMap<string, unknown> {
  return new Map(listLeaves(section).map((leaf) => [leaf.path, readLeaf(leaf)]))
}
