/** Prints one measured figure of an attack, in the form that README shows. */
export function figure(what: string, value: string | number): void {
  console.log(`figure: ${what}: ${value}`)
}
