/** What browsers have that read QR codes themselves (developer.mozilla.org, Barcode Detection API). */
type Detector = { detect(image: ImageBitmapSource): Promise<readonly { readonly rawValue: string }[]> }
type DetectorClass = {
  new (options: { readonly formats: readonly string[] }): Detector
  getSupportedFormats(): Promise<readonly string[]>
}

/** Null: this browser reads no QR codes. */
export async function findDetector(): Promise<Detector | null> {
  const found: unknown = Reflect.get(globalThis, 'BarcodeDetector')
  if (!isDetectorClass(found)) return null
  try {
    const formats = await found.getSupportedFormats()
    return formats.includes('qr_code') ? new found({ formats: ['qr_code'] }) : null
  } catch {
    return null
  }
}

function isDetectorClass(value: unknown): value is DetectorClass {
  return typeof value === 'function' && 'getSupportedFormats' in value
}

/** The first QR code of channels in a picture; null: there is none, or the file is no picture. */
export async function readPicture(detector: Detector, file: Blob): Promise<string | null> {
  try {
    const codes = await detector.detect(await createImageBitmap(file))
    return codes.find(({ rawValue }) => /meshtastic\.org\/.*#/i.test(rawValue))?.rawValue ?? null
  } catch {
    return null
  }
}
