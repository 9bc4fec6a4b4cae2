/** Units by the last part of a metric's name, as the protocol defines them. */
const UNITS: Readonly<Record<string, string>> = {
  batteryLevel: '%',
  voltage: 'V',
  current: 'mA',
  channelUtilization: '%',
  airUtilTx: '%',
  uptimeSeconds: 's',
  temperature: '°C',
  relativeHumidity: '%',
  barometricPressure: 'hPa',
  gasResistance: 'MΩ',
  distance: 'mm',
  lux: 'lx',
  whiteLux: 'lx',
  irLux: 'lx',
  uvLux: 'lx',
  windDirection: '°',
  windSpeed: 'm/s',
  windGust: 'm/s',
  windLull: 'm/s',
  weight: 'kg',
  radiation: 'µR/h',
  rainfall1h: 'mm',
  rainfall24h: 'mm',
  soilMoisture: '%',
  soilTemperature: '°C',
  oneWireTemperature: '°C',
  oneWireTemperatureCh: '°C',
  adcVoltageCh: 'V',
  lightningDistanceKm: 'km',
  co2: 'ppm',
  co2Temperature: '°C',
  co2Humidity: '%',
  formFormaldehyde: 'ppb',
  formHumidity: '%',
  formTemperature: '°C',
  pmTemperature: '°C',
  pmHumidity: '%',
  heartBpm: '1/min',
  spO2: '%',
  noiseFloor: 'dBm',
  rsrp: 'dBm',
  rsrq: 'dB',
  modemVoltageMv: 'mV',
}

/** Unit of a metric such as `deviceMetrics.voltage`; null for a mere number. */
export function unitOf(metric: string): string | null {
  const name = metric.slice(metric.lastIndexOf('.') + 1)
  const known = UNITS[name] ?? UNITS[name.replace(/\d+$/, '')]
  if (known !== undefined) return known
  if (/^pm\d+(Standard|Environmental)$/.test(name)) return 'µg/m³'
  if (/^ch\dVoltage$/.test(name)) return 'V'
  if (/^ch\dCurrent$/.test(name)) return 'mA'
  return /Bytes\d?$/.test(name) ? 'B' : null
}
