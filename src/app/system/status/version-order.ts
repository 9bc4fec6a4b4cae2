/** A version by semver.org, with an optional pre-release and build. */
export const VERSION =
  /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:-([0-9A-Za-z.-]{1,40}))?(?:\+[0-9A-Za-z.-]{1,40})?$/

/** Whether `a` has precedence over `b` (semver.org, 11). False if either is not a version. */
export function isNewer(a: string, b: string): boolean {
  const [one, other] = [VERSION.exec(a), VERSION.exec(b)]
  if (one === null || other === null) return false
  const numbers = (match: RegExpExecArray) => match.slice(1, 4).map(Number)
  const order = compareEach(numbers(one), numbers(other), (x, y) => x - y)
  return (order === 0 ? comparePreReleases(one[4], other[4]) : order) > 0
}

/** A pre-release comes before its release. */
function comparePreReleases(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  const [one, other] = [a.split('.'), b.split('.')]
  const order = compareEach(one, other, compareParts)
  return order === 0 ? one.length - other.length : order
}

/** Numbers by value, and before words. */
function compareParts(a: string, b: string): number {
  const [isNumber, isOtherNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)]
  if (isNumber && isOtherNumber) return Number(a) - Number(b)
  if (isNumber !== isOtherNumber) return isNumber ? -1 : 1
  return a === b ? 0 : a < b ? -1 : 1
}

function compareEach<T>(a: readonly T[], b: readonly T[], compare: (x: T, y: T) => number): number {
  for (const [index, x] of a.entries()) {
    const y = b[index]
    const order = y === undefined ? 0 : compare(x, y)
    if (order !== 0) return order
  }
  return 0
}
