// Every text of the application, by area: `t.nodes.title` is in strings/nodes.ts. Each area is a separate module,
// loaded with the pages that use it. Errors say what happened and what to do about it.
export * as t from './strings/areas.ts'

export const APP_NAME = 'Mesh Monitoring'
