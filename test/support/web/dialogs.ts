import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { codeAt } from '../factors/oathtool.ts'
import { haveCopies, haveRegion, press, pressed, type State, typedInto } from './states.ts'

/** Presses a button of a board that is being changed, and waits for the dialog. */
const changed = (name: string) => async (page: Page) => {
  const change = page.getByRole('button', { name: 'Change the board' })
  await change.waitFor()
  if ((await change.getAttribute('aria-pressed')) === 'false') await change.click()
  await pressed(name)(page)
}

/**
 * Each dialog of the application once. The site has a demo mesh, a provider at which the administrator has an account, and
 * what `test/web/states.test.ts` writes into its database. Those of one path follow each other.
 */
export const DIALOGS: readonly State[] = [
  {
    name: 'finder',
    of: 'shell/finder/finder.tsx',
    path: '/settings',
    open: async (page) => {
      await page.keyboard.press('Control+k')
      await typedInto('What to find')(page)
    },
  },
  {
    name: 'columns',
    of: 'pages/nodes/columns.tsx',
    path: '/nodes?hops=0',
    open: pressed('Views and columns', /^Columns$/),
  },
  { name: 'saving a view', of: 'pages/nodes/views.tsx', path: '/nodes?role=ROUTER', open: pressed('Save view') },
  {
    name: 'telling of a finding',
    of: 'pages/alerts/watch-dialog.tsx',
    path: '/findings',
    open: pressed('Tell me about this'),
  },
  {
    name: 'forgetting a node',
    of: 'pages/nodes/parts/manage.tsx',
    path: '/nodes/!30000001',
    open: pressed('Forget this node'),
  },
  {
    name: 'accepting a key',
    of: 'pages/nodes/parts/doubts.tsx',
    path: '/nodes/!30000001',
    open: pressed('This is the right key'),
  },
  {
    name: 'recipient',
    of: 'pages/messages/conversations.tsx',
    path: '/messages',
    open: async (page) => {
      await pressed('Write to a node…')(page)
      await typedInto('Recipient')(page)
    },
  },
  {
    name: 'nodes in one place',
    of: 'pages/map/pile/pile.tsx',
    path: '/map?q=crowd&center=46,8&zoom=18',
    open: async (page) => {
      const isOpen = async () => {
        await page.locator('.map').click()
        // Its code is loaded first. Another press would hit the dialog.
        const opened = page.getByRole('dialog').waitFor({ timeout: 5000 })
        return opened.then(
          () => true,
          () => false,
        )
      }
      await expect.poll(isOpen).toBe(true)
    },
  },
  {
    name: 'a detailed map',
    of: 'pages/map/background/region-dialog.tsx',
    path: '/settings',
    open: async (page) => {
      await haveRegion(page)
      await pressed('Detailed map of a region')(page)
      await page.getByText('About 84.0 MB').waitFor()
    },
  },
  {
    name: 'overlays of the map',
    of: 'pages/map/overlays/dialog.tsx',
    path: '/map?q=crowd',
    open: async (page) => {
      const open = page.getByRole('button', { name: 'Overlays…' })
      if (!(await open.isVisible())) await press(page, 'Layers')
      await pressed('Overlays…')(page)
      const buffer = Buffer.from('{"type":"Point","coordinates":[8,46]}')
      const input = page.locator('dialog input[type=file]')
      const form = page.getByRole('form', { name: 'Hut' }).first()
      if (!(await form.isVisible()))
        await input.setInputFiles({ name: 'Hut.json', mimeType: 'application/json', buffer })
      await form.waitFor()
    },
  },
  {
    name: 'a waypoint',
    of: 'pages/map/waypoints/waypoint-form.tsx',
    path: '/map?q=crowd',
    open: pressed('New waypoint'),
  },
  {
    name: 'deleting a waypoint',
    of: 'pages/map/panel/waypoint-list.tsx',
    path: '/map?q=crowd',
    open: async (page) => {
      const list = page.getByRole('button', { name: 'List and filters' })
      if (await list.isVisible()) await list.click()
      const waypoints = page.locator('summary', { hasText: 'waypoint' })
      // It is listed once the radio has sent it.
      if (!(await waypoints.isVisible())) {
        await pressed('New waypoint')(page)
        await page.getByRole('dialog').getByLabel('Name').fill('Hut')
        await page.getByRole('dialog').getByRole('button', { name: 'Share' }).click()
      }
      await waypoints.click()
      await pressed('Delete Hut')(page)
    },
  },
  {
    name: 'deleting a backup',
    of: 'pages/backups/backups.tsx',
    path: '/backups',
    open: async (page) => {
      if ((await page.getByRole('button', { name: /^Delete \d/ }).count()) === 0) await press(page, 'Back up now')
      await pressed(/^Delete \d/)(page)
    },
  },
  {
    name: 'restoring a backup',
    of: 'pages/backups/restore-dialog.tsx',
    path: '/backups',
    open: async (page) => {
      await pressed(/^Restore \d/)(page)
      await page.getByRole('dialog').getByRole('button').nth(1).waitFor()
    },
  },
  { name: 'a new board', of: 'pages/boards/boards.tsx', path: '/boards', open: pressed('New board') },
  {
    name: 'a chart',
    of: 'pages/boards/chart-dialog.tsx',
    path: '/boards/1',
    open: changed('Add a chart'),
  },
  { name: 'deleting a chart', of: 'pages/boards/board.tsx', path: '/boards/1', open: changed('Delete Power') },
  {
    name: 'sharing a board',
    of: 'pages/boards/board-dialog.tsx',
    path: '/boards/1',
    open: changed('Name and sharing'),
  },
  {
    name: 'deleting a board',
    of: 'pages/boards/board-dialog.tsx',
    path: '/boards/1',
    open: async (page) => {
      await changed('Name and sharing')(page)
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('dialog').getByText('Delete the board Crowd?').waitFor()
    },
  },
  {
    name: 'a place for copies',
    of: 'pages/backups/copies/place-dialog.tsx',
    path: '/backups/copies',
    open: async (page) => {
      await press(page, 'Add a place')
      await page.getByLabel('Access key ID').waitFor()
    },
  },
  {
    name: 'a new key for copies',
    of: 'pages/backups/copies/keys.tsx',
    path: '/backups/copies',
    open: async (page) => {
      await press(page, 'Make a key')
      await page.getByLabel('Its last four characters').waitFor()
    },
  },
  {
    name: 'a public key for copies',
    of: 'pages/backups/copies/keys.tsx',
    path: '/backups/copies',
    open: pressed('Add a public key'),
  },
  {
    name: 'removing a key for copies',
    of: 'pages/backups/copies/keys.tsx',
    path: '/backups/copies',
    open: async (page) => {
      await haveCopies(page)
      await pressed('Remove the safe')(page)
    },
  },
  {
    name: 'removing a place for copies',
    of: 'pages/backups/copies/copies.tsx',
    path: '/backups/copies',
    open: pressed('Remove the shed'),
  },
  { name: 'a frame', of: 'pages/users/embed-profiles.tsx', path: '/public-access', open: pressed('New frame') },
  {
    name: 'deleting a frame',
    of: 'pages/users/embed-profiles.tsx',
    path: '/public-access',
    open: async (page) => {
      await pressed('New frame')(page)
      await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('The town')
      await page.getByRole('dialog').locator('textarea').fill('https://town.example.org')
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await pressed(/^Delete .*The town/)(page)
    },
  },
  { name: 'resetting a password', of: 'pages/users/access.tsx', path: '/users/2', open: pressed('Reset password') },
  {
    name: 'the new password',
    of: 'pages/users/access.tsx',
    path: '/users/2',
    open: async (page) => {
      await pressed('Reset password')(page)
      await page.getByRole('dialog').getByRole('button', { name: 'Reset password' }).click()
      await page.getByRole('dialog').locator('code').waitFor()
    },
  },
  {
    name: "unlinking a user's account",
    of: 'pages/users/linked.tsx',
    path: '/users/1',
    open: pressed(/^Unlink /),
  },
  { name: 'ending sessions', of: 'pages/users/credentials.tsx', path: '/users/1', open: pressed('End all sessions') },
  { name: 'an invitation', of: 'pages/users/invitation.tsx', path: '/users/3', open: pressed('Make a link') },
  { name: 'a new token', of: 'pages/account/tokens.tsx', path: '/account', open: pressed('New token') },
  {
    name: 'a token that was made',
    of: 'pages/account/tokens.tsx',
    path: '/account',
    open: async (page) => {
      await pressed('New token')(page)
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name').fill('collector')
      await page.getByLabel('Nodes and map: write').check()
      await dialog.getByRole('button', { name: 'New token' }).click()
      await page.getByRole('heading', { name: 'Copy the token now' }).waitFor()
      await expect.poll(() => dialog.locator('code').textContent()).toMatch(/^mm_/)
    },
  },
  {
    name: 'revoking a token',
    of: 'pages/account/tokens.tsx',
    path: '/account',
    open: pressed('Revoke the token collector'),
  },
  { name: 'unlinking the account', of: 'pages/account/link.tsx', path: '/account', open: pressed('Unlink') },
  { name: 'naming a passkey', of: 'pages/account/factors.tsx', path: '/account', open: pressed('Add a passkey') },
  { name: 'an app for codes', of: 'pages/account/factors.tsx', path: '/account', open: pressed(/^Set up an/) },
  {
    name: 'recovery codes',
    of: 'parts/recovery-codes.tsx',
    path: '/account?codes',
    open: async (page) => {
      // Until the factors are loaded.
      await page
        .getByText(/^You sign in with your password alone|recovery codes left$/)
        .first()
        .waitFor()
      const renew = page.getByRole('button', { name: 'New recovery codes' })
      if (await renew.isVisible()) {
        await renew.click()
        await page.getByRole('dialog').getByRole('button', { name: 'New recovery codes' }).click()
      } else {
        await pressed(/^Set up an/)(page)
        const secret = (await page.getByLabel('Or type this key into the app').textContent()) ?? ''
        await page.getByLabel('Six digits from the app').fill(codeAt(secret, Date.now()))
        await page.getByRole('button', { name: 'Confirm' }).click()
      }
      await page.getByRole('dialog', { name: 'Keep these recovery codes' }).waitFor()
    },
  },
  {
    name: 'renewing recovery codes',
    of: 'pages/account/factors.tsx',
    path: '/account',
    open: pressed('New recovery codes'),
  },
  {
    name: 'removing a factor',
    of: 'pages/account/factors.tsx',
    path: '/account',
    open: pressed(/^Remove/),
  },
  { name: 'deleting an automation', of: 'pages/automation/version.ts', path: '/automation/1', open: pressed('Delete') },
  {
    name: 'a change of a radio',
    of: 'pages/device-config/review.tsx',
    path: '/configuration/position',
    open: async (page) => {
      await page.getByRole('group', { name: 'Position flags' }).getByRole('checkbox').first().click()
      await pressed('Review and send')(page)
    },
  },
  {
    name: 'sharing channels',
    of: 'pages/device-config/transfer/share.tsx',
    path: '/configuration/channels',
    open: pressed('Share channels'),
  },
  {
    name: 'adding channels',
    of: 'pages/device-config/transfer/add.tsx',
    path: '/configuration/channels',
    open: pressed('Add channels'),
  },
  {
    name: 'exporting a file',
    of: 'pages/device-config/transfer/file.tsx',
    path: '/configuration/owner',
    open: pressed('Export file'),
  },
  {
    name: 'importing a file',
    of: 'pages/device-config/transfer/file.tsx',
    path: '/configuration/owner',
    open: pressed('Import file'),
  },
  {
    name: 'an alert rule',
    of: 'pages/alerts/rule-form.tsx',
    path: '/alerts',
    open: pressed('New rule'),
  },
  { name: 'deleting an alert rule', of: 'pages/alerts/rules.tsx', path: '/alerts', open: pressed('Delete') },
  { name: 'a destination', of: 'pages/alerts/destinations.tsx', path: '/alerts', open: pressed(/^Add a destination$/) },
  {
    name: 'the secret of a destination',
    of: 'pages/alerts/destinations.tsx',
    path: '/alerts',
    open: async (page) => {
      await pressed(/^Add a destination$/)(page)
      await page.getByLabel('Tell me by').selectOption('webhook')
      await page.getByLabel('Url').fill('https://alerts.example.org/hook')
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      await page.getByText('It is shown only now').first().waitFor()
    },
  },
  {
    name: 'deleting a destination',
    of: 'pages/alerts/destinations.tsx',
    path: '/alerts',
    open: async (page) => {
      await page
        .getByRole('listitem')
        .filter({ hasText: 'Webhook' })
        .getByRole('button', { name: 'Delete' })
        .first()
        .click()
      await page.getByRole('dialog').waitFor()
    },
  },
  {
    name: 'deleting what another user watches',
    of: 'pages/alerts/everybody.tsx',
    path: '/alerts',
    open: async (page) => {
      const others = page.getByRole('button', { name: 'Show what others watch' })
      if (await others.isVisible()) await others.click()
      await page.getByRole('listitem').filter({ hasText: 'anna' }).getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('dialog').waitFor()
    },
  },
]

/** These change what other pages show, so they come last. */
export const LAST_DIALOGS: readonly State[] = [
  {
    name: 'settling who a node is',
    of: 'pages/nodes/parts/doubts.tsx',
    path: '/nodes/!30000009',
    open: pressed('Take the other names'),
  },
  {
    name: 'leaving whose radio it is to the radios',
    of: 'pages/nodes/parts/doubts.tsx',
    path: '/nodes/!30000009',
    open: pressed('Leave it to the radios'),
  },
  {
    name: 'damage of the audit log',
    of: 'shell/audit-damage-advice.tsx',
    path: '/users?q=anna',
    open: async (page) => {
      await page.reload()
      await pressed('Dealt with it')(page)
    },
  },
  {
    name: 'access that a restore brought back',
    of: 'shell/restored-access-decision.tsx',
    path: '/users?q=anna',
    open: async (page) => {
      await page.reload()
      await pressed('Leave everything as restored')(page)
    },
  },
  {
    name: 'a proof',
    of: 'parts/proof.tsx',
    path: '/backups',
    open: async (page) => {
      await page
        .locator('tbody')
        .getByRole('link', { name: /^Download/ })
        .first()
        .click()
      await page.getByLabel('Password', { exact: true }).waitFor()
    },
  },
]
