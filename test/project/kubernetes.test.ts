import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { createTestApp, type TestApp } from '../support/app.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

let app: TestApp
beforeAll(async () => {
  app = await createTestApp()
})
afterAll(() => app.close())

/** The documents of the file by their kind. */
function documents() {
  const all = parseAllDocuments(read('deploy/kubernetes.yaml')).map((document) => document.toJS())
  return Object.fromEntries(all.map((document) => [document.kind, document]))
}

test('the parts of the file for Kubernetes name each other', () => {
  const { PersistentVolumeClaim, Deployment, Service } = documents()
  const { metadata, spec } = Deployment.spec.template
  const [container] = spec.containers
  expect(Deployment.spec.selector.matchLabels).toStrictEqual(metadata.labels)
  expect(Service.spec.selector).toStrictEqual(metadata.labels)
  expect(Service.spec.ports[0].targetPort).toBe(container.ports[0].name)
  expect(container.volumeMounts.map(({ name }: { name: string }) => name)).toStrictEqual(
    spec.volumes.map(({ name }: { name: string }) => name),
  )
  expect(spec.volumes[0].persistentVolumeClaim.claimName).toBe(PersistentVolumeClaim.metadata.name)
})

test('it runs one instance at a time, and gives it time to stop', () => {
  const { spec } = documents()['Deployment']
  expect([spec.replicas, spec.strategy.type]).toStrictEqual([1, 'Recreate'])
  expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(35)
})

test('its probes, and that of the image, are routes that anybody may call', async () => {
  const [container] = documents()['Deployment'].spec.template.spec.containers
  const paths = ['startupProbe', 'readinessProbe', 'livenessProbe'].map((name) => container[name].httpGet.path)
  expect(paths).toStrictEqual(['/api/live', '/api/ready', '/api/live'])
  const [, image = ''] = /HEALTHCHECK[^]*?8080\}(\/[\w/]+)`/.exec(read('Dockerfile')) ?? []
  for (const path of [...paths, image]) expect((await app.request(path)).status).toBe(200)
})
