import { join } from 'node:path'
import { openDatabase } from '../../../src/node/database.ts'
import { addTopology } from '../mesh/topology.ts'
import { ADMIN_PASSWORD, closeVisits, openSignedIn } from '../signed-in.ts'
import { openSite, type Site } from './site.ts'

/** The demo mesh with routes, links, a track and waypoints. */
export async function openDemoMap(): Promise<Site> {
  const site = await openSite({ ADMIN_PASSWORD })
  const { page } = await openSignedIn(site, '/nodes')
  await page.getByText('Valley Village').waitFor()
  await closeVisits()
  const store = openDatabase(join(site.data, 'mesh.db'))
  await addTopology(store, Date.now())
  store.close()
  return site
}
