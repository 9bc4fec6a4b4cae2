/** A backup does not match its manifest, or has invalid content. The message names the file and the problem. */
export class BackupDamage extends Error {
  override name = 'BackupDamage'
}

/** A restore cannot continue; nothing has changed. The message is the line for the log. */
export class RestoreRefused extends Error {
  override name = 'RestoreRefused'
}
