/** Ports that stand for the same thing, such as two ways to one database, and the one that owns its state. */
const originals = new WeakMap<object, object>()

/** From now on the state of `original` is that of `port`, too. */
export function ownsFor<Owner extends object>(original: Owner, port: Owner): void {
  originals.set(port, original)
}

/**
 * State of this process that belongs to a port, such as the database, the session store or the events. It is made when
 * it is first needed, once for each port, and ends with it. Nothing else at module level holds state: what a function
 * remembers is the state of an argument.
 */
export function ownedBy<Owner extends object, State>(make: (owner: Owner) => State): (owner: Owner) => State {
  const states = new WeakMap<object, State>()
  return (given) => {
    const owner = originals.get(given) ?? given
    const known = states.get(owner)
    if (known !== undefined) return known
    const made = make(given)
    states.set(owner, made)
    return made
  }
}
