import type { Target } from '../../../../app/system/copies/settings.ts'
import type { Resolve } from '../../../alerts/outbound.ts'
import { demandCertificates } from './authorities.ts'
import { openFolder } from './folder.ts'
import type { Place } from './place.ts'
import type { Timings } from './requests.ts'
import { openS3 } from './s3.ts'
import { openWebDav } from './webdav.ts'

export type PlaceOptions = {
  /** Lets `ms` pass. */
  readonly wait: (ms: number) => Promise<unknown>
  /** Null: not the machine of the service. */
  readonly dataDir: string | null
  readonly signal?: AbortSignal
  readonly resolve?: Resolve
  readonly timings?: Timings
  readonly multipartBytes?: number
}

/** Throws `CopyFailure` for certificates that cannot be read. */
export type OpenPlace = (target: Target) => Place

export function placeOpener({ dataDir, multipartBytes, ...common }: PlaceOptions): OpenPlace {
  return ({ kind, settings }) => {
    if (kind === 'folder') return openFolder(settings.path, dataDir, common.signal)
    if (settings.ca !== null) demandCertificates(settings.ca)
    const server = { ...common, isOwnNetwork: settings.ownNetwork, ca: settings.ca }
    if (kind === 'webdav') return openWebDav(settings, server)
    return openS3(settings, { ...server, ...(multipartBytes !== undefined && { multipartBytes }) })
  }
}
