// What the modules of the page expect of a browser, where none is: imported before them.

/** Storage of a tab, as far as drafts use it: keys are its own properties. */
const storage: Record<string, unknown> = {}
for (const [name, value] of Object.entries({
  getItem: (key: string) => storage[key] ?? null,
  setItem: (key: string, text: string) => void (storage[key] = text),
  removeItem: (key: string) => void delete storage[key],
})) {
  Object.defineProperty(storage, name, { value })
}

Object.assign(globalThis, { location: new URL('https://mesh.example.org/'), sessionStorage: storage })
