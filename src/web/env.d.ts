interface ImportMetaEnv {
  /** Of the service that these pages were built with, as package.json has it. */
  readonly VERSION: string
}
