import { said } from '../../../app/words/words.ts'

/** Why a region cannot be downloaded, as whole sentences: they are kept on the disk, and translated for who reads them. */
export const PROBLEMS = {
  silent: said('The planet archive does not answer: check the network and MAP_ARCHIVE_URL, then try again'),
  gone: said('The planet archive is not at the address in MAP_ARCHIVE_URL'),
  redirected: said('The planet archive redirects to another address: set MAP_ARCHIVE_URL to that one'),
  noRanges: said('The server of the planet archive does not serve ranges of bytes'),
  wrongRange: said('The planet archive sent other bytes than those it was asked for'),
  damaged: said('The planet archive is damaged, or no clustered PMTiles 3 archive of images or vector tiles'),
  damagedTile: said('A tile of the planet archive is damaged'),
  unstable: said('The planet archive changes all the time: try again later'),
  noRoom: said('The disk of this service has no room for this map'),
  tooLarge: said('This map is larger than MAP_ARCHIVE_MAX_MB: choose a smaller region or a lower zoom level'),
  tooManyTiles: said('This region has too many tiles: choose a smaller region or a lower zoom level'),
  empty: said('The planet archive has no tiles of this region'),
  elsewhere: said('Another process downloads the map: end it there'),
  failed: said('The map could not be written: the log has the reason'),
} as const

/** Ends a download for good; what was fetched is kept if the same download may continue later. */
export class RegionFailed extends Error {
  override name = 'RegionFailed'
  readonly problem: keyof typeof PROBLEMS

  constructor(problem: keyof typeof PROBLEMS, cause?: unknown) {
    super(PROBLEMS[problem].text, cause === undefined ? undefined : { cause })
    this.problem = problem
  }
}
