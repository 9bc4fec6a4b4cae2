import type { SyslogTarget } from '../../config/anchor-target.ts'

/** Messages to a syslog server, in order: over UDP one datagram each, otherwise with octet counting (RFC 6587). */
export interface Syslog {
  /** Throws `SendFailure`; some messages may have arrived nevertheless. */
  send(target: SyslogTarget, messages: readonly string[]): Promise<void>
}
