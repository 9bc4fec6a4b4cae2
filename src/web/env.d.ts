interface ImportMetaEnv {
  /** The version of the service that these pages were built with, from package.json. */
  readonly VERSION: string
  /** The pieces of the map that every installation has, of scripts/world.js. */
  readonly WORLD: {
    /** Below the path of the site. */
    readonly folder: string
    /** For each zoom level, a bit for each piece, row by row, in Base64. */
    readonly pieces: Readonly<Record<number, string>>
  }
}
