/** Prints one measured figure of an attack, in the form shown in the README. */
export function figure(what: string, value: string | number): void {
  console.log(`figure: ${what}: ${value}`)
}
