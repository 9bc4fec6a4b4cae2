import type { FromRadioVariant } from '../radio/device.ts'
import { fromRadio } from '../radio/device.ts'

/** A message of a radio as a collector delivers it: base64. */
export function item(variant: FromRadioVariant): string {
  return Buffer.from(fromRadio(variant)).toString('base64')
}
