import { enumName } from '../enum-name.ts'
import {
  Config_DeviceConfig_RoleSchema,
  Config_LoRaConfig_ModemPresetSchema,
  Config_LoRaConfig_RegionCodeSchema,
} from '../gen/config_pb.ts'
import { HardwareModel, HardwareModelSchema } from '../gen/hardware_pb.ts'
import type { MapReport as WireMapReport } from '../gen/mqtt_pb.ts'
import { decodeCoordinates } from './position.ts'

/** A gateway's unencrypted report about itself, for maps. */
export type MapReport = {
  readonly longName: string | null
  readonly shortName: string | null
  /** As in `NodeUser`. */
  readonly isNameAltered?: true
  readonly hwModel: string | null
  readonly role: string
  readonly firmwareVersion: string | null
  readonly region: string
  readonly modemPreset: string
  readonly latitude: number | null
  readonly longitude: number | null
  /** Metres. */
  readonly altitude: number | null
  readonly precisionBits: number | null
  /** Nodes heard by radio in the last two hours. */
  readonly onlineLocalNodes: number
}

export function decodeMapReport(report: WireMapReport): MapReport {
  const place = decodeCoordinates(report.latitudeI, report.longitudeI)
  return {
    longName: report.longName || null,
    shortName: report.shortName || null,
    hwModel: report.hwModel === HardwareModel.UNSET ? null : enumName(HardwareModelSchema, report.hwModel),
    role: enumName(Config_DeviceConfig_RoleSchema, report.role),
    firmwareVersion: report.firmwareVersion || null,
    region: enumName(Config_LoRaConfig_RegionCodeSchema, report.region),
    modemPreset: enumName(Config_LoRaConfig_ModemPresetSchema, report.modemPreset),
    latitude: place?.latitude ?? null,
    longitude: place?.longitude ?? null,
    altitude: report.altitude,
    precisionBits: report.positionPrecision || null,
    onlineLocalNodes: report.numOnlineLocalNodes,
  }
}
