// What the modules of the page expect of a browser, for tests without one: import it before them.

/** A storage as the page uses it: keys are its own properties. */
function createStorage(): Record<string, unknown> {
  const storage: Record<string, unknown> = {}
  for (const [name, value] of Object.entries({
    getItem: (key: string) => storage[key] ?? null,
    setItem: (key: string, text: string) => void (storage[key] = text),
    removeItem: (key: string) => void delete storage[key],
  })) {
    Object.defineProperty(storage, name, { value })
  }
  return storage
}

const nothingFocused = { visibilityState: 'visible', activeElement: null, querySelector: () => null }

Object.assign(globalThis, {
  location: new URL('https://mesh.example.org/'),
  sessionStorage: createStorage(),
  localStorage: createStorage(),
  document: Object.assign(new EventTarget(), nothingFocused),
  requestAnimationFrame: (draw: () => void) => setTimeout(draw, 16),
  cancelAnimationFrame: (drawing: NodeJS.Timeout) => clearTimeout(drawing),
})
