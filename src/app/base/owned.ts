/**
 * State of this process that belongs to a port, such as the database, the session store or the events. It is made when
 * it is first needed, once for each port, and ends with it. Nothing else at module level holds state: what a function
 * remembers is the state of an argument.
 */
export function ownedBy<Owner extends object, State>(make: (owner: Owner) => State): (owner: Owner) => State {
  const states = new WeakMap<Owner, State>()
  return (owner) => {
    const known = states.get(owner)
    if (known !== undefined) return known
    const made = make(owner)
    states.set(owner, made)
    return made
  }
}
