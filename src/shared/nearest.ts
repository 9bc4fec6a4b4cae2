/** The number of characters to insert, delete or replace (Levenshtein). Takes time by the product of both lengths. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** A longer text is not a mistyped name. */
const MAX_CHARACTERS = 100

/** The names that are most like a text without regard to case, the nearest first, each at most `within` edits away. */
export function nearestNames(text: string, names: readonly string[], within: number): string[] {
  if (text.length > MAX_CHARACTERS) return []
  const wanted = text.toLowerCase()
  return names
    .filter((name) => Math.abs(name.length - wanted.length) <= within)
    .map((name) => ({ name, distance: editDistance(wanted, name.toLowerCase()) }))
    .filter(({ distance }) => distance <= within)
    .toSorted((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name)
}
