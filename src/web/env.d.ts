interface ImportMetaEnv {
  /** The version of the service that these pages were built with, from package.json. */
  readonly VERSION: string
}
