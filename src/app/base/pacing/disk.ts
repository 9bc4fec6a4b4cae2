/** A disk with a reserve for administrators, who need some space to be able to free more. */
export interface Disk {
  /** Whether there is no room for received data. */
  isFull(): boolean
  /** Frees the reserve of a full disk: called before changes by administrators, and before old data is deleted. */
  makeRoom(): void
  space(): DiskSpace
}

/** In bytes. `spare`: free inside the file of the database, which new rows use before the file grows. */
export type DiskSpace = { readonly total: number; readonly free: number; readonly spare: number }
