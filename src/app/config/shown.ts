/** Characters of a value in an error. */
const MAX_SHOWN = 100

/** A value in quotes, for an error: a long one is cut, because it may be a whole file by mistake. */
export function shownValue(value: string): string {
  return value.length > MAX_SHOWN
    ? `${JSON.stringify(value.slice(0, MAX_SHOWN))}… (${value.length} characters)`
    : JSON.stringify(value)
}

/** As `shownValue`, without quotes, for a part of a value in what is expected instead. */
export function shownText(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}
