/** A backup is not what its manifest says, or says what no backup may. The message names the file and what is wrong. */
export class BackupDamage extends Error {
  override name = 'BackupDamage'
}

/** A restore can't go on; nothing has changed. The message is the line for the log. */
export class RestoreRefused extends Error {
  override name = 'RestoreRefused'
}
