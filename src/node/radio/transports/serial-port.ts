export type SerialPort = InstanceType<typeof import('serialport').SerialPort>

let loading: Promise<typeof import('serialport').SerialPort | 'unsupported'> | null = null

/**
 * The library, loaded with the first use; `unsupported` if it has no binary for this machine. Decision:
 * docs/decisions/short-decisions.md#the-library-of-serial-ports-is-a-part-of-the-program
 */
export function loadSerialPort(): Promise<typeof import('serialport').SerialPort | 'unsupported'> {
  loading ??= import('serialport').then(
    // In the built service the library has only its default export.
    ({ default: { SerialPort } }) => SerialPort,
    () => 'unsupported' as const,
  )
  return loading
}
