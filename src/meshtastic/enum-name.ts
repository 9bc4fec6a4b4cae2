import type { DescEnum } from '@bufbuild/protobuf'

/** Name of an enum number as on the wire, e.g. `HELTEC_V3`; a number newer than our table becomes `UNKNOWN_131`. */
export function enumName(schema: DescEnum, number: number): string {
  return schema.value[number]?.name ?? `UNKNOWN_${number}`
}
