import { catalog } from '../../language.ts'

/** What charts of several lines say, and their files. */
export const chartTexts = catalog('chartTexts', {
  png: 'PNG',
  span: (from: string, to: string) => `${from} to ${to}`,
  metrics: 'Measurements',
  addMetric: 'Add a measurement',
  choose: 'Choose…',
  bounds: (most: number) => `A chart has at most two units and ${most} lines. A line is one measurement of one node.`,
})
