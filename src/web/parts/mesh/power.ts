/** Whether a measurement is no charge: a radio with external power reports a battery of 101 %. */
export function isPower(metric: string, value: number): boolean {
  return metric.endsWith('.batteryLevel') && value > 100
}
