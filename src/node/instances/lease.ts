import type { InstancesFile } from './file.ts'

/** An instance that is silent for this long counts as dead. */
export const LEASE_MS = 15_000

/** The right to run the radios and the schedules: one row that names its holder. */
export type Lease = {
  /** Takes the lease if it is free or its holder is silent; true if this instance holds it now. */
  acquire(): boolean
  /** Renews the lease; false when another instance has it. */
  renew(): boolean
  /**
   * Reads the row, so that a process that was suspended for long notices that it lost the lease. False when the row
   * can't be read.
   */
  isHeld(): boolean
  release(): void
  /** The number that this instance got with the lease. Each new holder gets a higher one. */
  token(): number
  /** The holder and its number; null while no running instance holds it. */
  owner(): { readonly id: string; readonly token: number } | null
}

type Row = { readonly owner: string | null; readonly token: number; readonly expires_at: number }

/**
 * `hasRadios`: an instance with configured radios takes the lease from one without. If `now` jumps, the worst result is
 * a change of holder.
 */
export function createLease({ sqlite, id }: InstancesFile, hasRadios: boolean, now: () => number): Lease {
  const values = () => ({
    id,
    now: now(),
    until: now() + LEASE_MS,
    far: now() + 2 * LEASE_MS,
    radios: Number(hasRadios),
  })
  const take = sqlite
    .prepare<[ReturnType<typeof values>], number>(
      `update lease set owner = @id, token = token + 1, expires_at = @until, has_radios = @radios
      where owner is null or expires_at <= @now or expires_at > @far or (@radios > has_radios and owner <> @id)
      returning token`,
    )
    .pluck()
  const prolong = sqlite.prepare('update lease set expires_at = @until where owner = @id and token = @token')
  const give = sqlite.prepare('update lease set owner = null where owner = @id and token = @token')
  const read = sqlite.prepare<[], Row>('select owner, token, expires_at from lease')
  let token = 0
  const isOwn = (row: Row | undefined) => row !== undefined && row.owner === id && row.token === token
  return {
    acquire() {
      const taken = sqlite.transaction(() => take.get(values())).immediate()
      if (taken === undefined) return false
      token = taken
      return true
    },
    renew: () => prolong.run({ until: now() + LEASE_MS, id, token }).changes > 0,
    isHeld() {
      try {
        return isOwn(read.get())
      } catch {
        // Called before each write to a radio, and must not end the process. If the database does not answer, nothing
        // is written.
        return false
      }
    },
    release() {
      give.run({ id, token })
    },
    token: () => token,
    owner() {
      const row = read.get()
      if (row === undefined || row.owner === null || row.expires_at <= now()) return null
      return { id: row.owner, token: row.token }
    },
  }
}
