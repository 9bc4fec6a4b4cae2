/** A disk with a reserve for administrators, who need some space to be able to free more. */
export interface Disk {
  /** Whether nothing that is heard has room. */
  isFull(): boolean
  /** Frees the reserve of a disk that is full: called before administrators change anything, and before old data goes. */
  makeRoom(): void
}
