import { isFieldSet } from '@bufbuild/protobuf'
import { base64Encode } from '@bufbuild/protobuf/wire'
import { enumName } from '../enum-name.ts'
import { Config_DeviceConfig_RoleSchema } from '../gen/config_pb.ts'
import { HardwareModel, HardwareModelSchema } from '../gen/hardware_pb.ts'
import { type User, UserSchema } from '../gen/payloads_pb.ts'

/** A node's identity. Null means "not reported" and never clears a known value. */
export type NodeUser = {
  readonly longName: string | null
  readonly shortName: string | null
  /** Control characters or invisible ones were removed from a name. */
  readonly isNameAltered?: true
  /** E.g. `HELTEC_V3`. */
  readonly hwModel: string | null
  /** E.g. `CLIENT`. */
  readonly role: string
  readonly isLicensed: boolean
  /** Base64 of 32 bytes. */
  readonly publicKey: string | null
  readonly isUnmessagable: boolean | null
}

export function decodeUser(user: User): NodeUser {
  return {
    longName: cleanName(user.longName),
    shortName: cleanName(user.shortName),
    hwModel: user.hwModel === HardwareModel.UNSET ? null : enumName(HardwareModelSchema, user.hwModel),
    role: enumName(Config_DeviceConfig_RoleSchema, user.role),
    isLicensed: user.isLicensed,
    publicKey: encodePublicKey(user.publicKey),
    isUnmessagable: isFieldSet(user, UserSchema.field.isUnmessagable) ? user.isUnmessagable : null,
  }
}

/** Base64 of a node's X25519 key; null for anything that is not 32 bytes. */
export function encodePublicKey(key: Uint8Array): string | null {
  return key.length === 32 ? base64Encode(key) : null
}

/** Firmware pads names with NUL. */
function cleanName(name: string): string | null {
  return withoutCut(name.replaceAll('\0', '')).trim() || null
}

/** Firmware may cut a text inside a character, which leaves replacement characters at its end. */
export function withoutCut(text: string): string {
  return text.replace(/\uFFFD+$/u, '')
}
