/** A disk of which a part is kept for administrators, who can make room only as long as there is some. */
export interface Disk {
  /** Whether nothing that is heard has room. */
  isFull(): boolean
  /** Frees the reserve of a disk that is full: called before administrators change anything, and before old data goes. */
  makeRoom(): void
}
