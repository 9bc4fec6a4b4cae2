/** Prints one measured figure of an attack, in the form shown in docs/performance.md. */
export function figure(what: string, value: string | number): void {
  console.log(`figure: ${what}: ${value}`)
}
