import { ALERT_KINDS } from '../../../src/app/alerts/kinds/kinds.ts'
import { haveRegion, press, pressed, type State, typedInto } from './states.ts'

/** What opens besides the dialogs, and what dialogs show besides. */
export const STATES: readonly (State & { readonly onlyOnPhone?: boolean })[] = [
  {
    name: 'more pages',
    of: 'shell/shell.tsx',
    path: '/',
    onlyOnPhone: true,
    open: (page) => press(page, 'More'),
  },
  {
    name: 'filters to add',
    of: 'pages/nodes/filters.tsx',
    path: '/nodes?hops=0&battery=50',
    open: async (page) => {
      await page.getByRole('button', { name: 'Filter', exact: true }).click()
      await page.getByRole('group', { name: 'Filter by' }).getByRole('button', { name: 'Role' }).waitFor()
    },
  },
  {
    name: 'views and columns',
    of: 'pages/nodes/nodes.tsx',
    path: '/nodes?hops=0',
    open: async (page) => {
      await press(page, 'Views and columns')
      await page.getByLabel('Sort by').waitFor()
    },
  },
  {
    name: 'filters of messages',
    of: 'parts/list/filters-button.tsx',
    path: '/messages',
    open: async (page) => {
      await press(page, 'Filters')
      await page.getByRole('combobox', { name: 'Sender' }).waitFor()
    },
  },
  {
    name: 'area of a detailed map in degrees',
    of: 'pages/map/background/region-form.tsx',
    path: '/settings',
    open: async (page) => {
      await haveRegion(page)
      await press(page, 'Detailed map of a region')
      await page.getByText('In degrees').click()
      await page.getByLabel('West', { exact: true }).waitFor()
    },
  },
  {
    name: 'toast',
    of: 'parts/notice.tsx',
    path: '/nodes/!a0cb0102',
    open: async (page) => {
      await page.getByLabel('Notes').fill(`Key at the museum ${Math.random()}`)
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await page.locator('.toast').waitFor()
    },
  },
  {
    name: 'sender to search for',
    of: 'parts/form/node-picker.tsx',
    path: '/messages',
    open: async (page) => {
      await press(page, 'Filters')
      await typedInto('Sender')(page)
    },
  },
  {
    name: 'reactions',
    of: 'pages/messages/item.tsx',
    path: '/messages',
    open: (page) => page.locator('.message').getByRole('button', { name: 'React' }).last().click(),
  },
  {
    name: 'details of a message',
    of: 'pages/messages/item.tsx',
    path: '/messages',
    open: (page) => page.locator('.message').getByRole('button', { name: 'Details' }).last().click(),
  },
  {
    name: 'packet',
    of: 'parts/list/log-table.tsx',
    path: '/packets',
    open: (page) => page.locator('.expander').first().click(),
  },
  {
    name: 'entry of the audit log',
    of: 'parts/list/log-table.tsx',
    path: '/audit',
    open: async (page) => {
      await page.locator('.expander').first().click()
      await page.locator('.detail').waitFor()
    },
  },
  {
    name: 'asking for a traceroute',
    of: 'pages/topology/traceroutes.tsx',
    path: '/traceroutes',
    open: (page) => press(page, 'New traceroute'),
  },
  {
    name: 'legend',
    of: 'pages/map/legend/legend.tsx',
    path: '/map',
    open: (page) => page.getByText('Legend').click(),
  },
  {
    name: 'layers',
    of: 'pages/map/map.tsx',
    path: '/map',
    open: (page) => press(page, 'Layers'),
  },
  {
    name: 'list of the map on a phone',
    of: 'pages/map/panel/panel.tsx',
    path: '/map',
    onlyOnPhone: true,
    open: (page) => press(page, 'List and filters'),
  },
  ...ALERT_KINDS.map((kind): State => {
    return {
      name: `a rule about ${kind}`,
      of: 'pages/alerts/rule-form.tsx',
      path: '/alerts',
      open: async (page) => {
        await pressed('New rule')(page)
        await page.getByLabel('Tell me about').selectOption(kind)
        if (kind !== 'area') return
        await page.getByLabel('When it', { exact: true }).selectOption('enters')
        await page.locator('.area-map canvas').first().waitFor({ state: 'attached' })
      },
    }
  }),
  {
    name: 'an area with corners',
    of: 'pages/alerts/rule-form.tsx',
    path: '/alerts',
    open: async (page) => {
      await pressed('New rule')(page)
      await page.getByLabel('Tell me about').selectOption('area')
      await page.getByLabel('When it', { exact: true }).selectOption('enters')
      await page.getByLabel('Area', { exact: true }).selectOption('polygon')
      const map = page.locator('.area-map .map')
      await map.locator('canvas').first().waitFor({ state: 'attached' })
      await map.scrollIntoViewIfNeeded()
      await map.click({ position: { x: 60, y: 60 } })
      await map.getByTitle('Corner 1').waitFor()
    },
  },
  {
    name: 'when a rule would have fired',
    of: 'pages/alerts/rule-form.tsx',
    path: '/alerts',
    open: async (page) => {
      await pressed('New rule', 'When would it have fired?')(page)
      await page.getByText(/^In the last 7 days it would/).waitFor()
    },
  },
  {
    name: 'what others watch',
    of: 'pages/alerts/everybody.tsx',
    path: '/alerts',
    open: (page) => press(page, 'Show what others watch'),
  },
  {
    name: 'nodes of a rule in automation',
    of: 'parts/form/node-picker.tsx',
    path: '/automation/new?kind=schedule',
    open: typedInto('To'),
  },
  {
    name: 'limits of automation',
    of: 'pages/automation/try.tsx',
    path: '/automation',
    open: (page) => page.getByText('Limits that protect the mesh').click(),
  },
  {
    name: 'suggestions of a search',
    of: 'pages/messages/message-search.tsx',
    path: '/messages',
    open: async (page) => {
      await page.getByRole('combobox', { name: 'Search messages' }).fill('has:')
      await page.getByRole('option').first().waitFor()
    },
  },
  {
    name: 'what an import left out',
    of: 'pages/backups/bring-history.tsx',
    path: '/backups',
    open: (page) => page.getByText('Left out, or not as it was').click(),
  },
  {
    name: 'more settings of a place for copies',
    of: 'parts/form/shaped-fields.tsx',
    path: '/backups/copies',
    open: async (page) => {
      await press(page, 'Add a place')
      await page.getByText('More settings').click()
    },
  },
  {
    name: 'watching a node',
    of: 'pages/alerts/watch-dialog.tsx',
    path: '/nodes/!30000001',
    open: pressed('Watch this node'),
  },
]
