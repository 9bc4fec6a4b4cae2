import * as z from 'zod'

/** The latitude where the square web map ends. */
export const MAX_LATITUDE = 85.05
/** No planet archive has tiles of a higher zoom level. */
export const MAX_REGION_ZOOM = 15

/** West, south, east, north in degrees. */
export type Bounds = [west: number, south: number, east: number, north: number]

/** A part of the world, and how detailed it is. */
export type Area = { readonly bounds: Bounds; readonly maxZoom: number }

const longitude = z.number().min(-180).max(180)
const latitude = z.number().min(-MAX_LATITUDE).max(MAX_LATITUDE)
const corners = z.tuple([longitude, latitude, longitude, latitude])
export const boundsField = corners.describe('West, south, east, north in degrees')
export const maxZoomField = z.int().min(0).max(MAX_REGION_ZOOM)

export const areaSchema = z.strictObject({
  bounds: boundsField
    .refine(
      ([west, , east]) => west < east,
      'West must be less than east: a region cannot cross the 180th meridian, so choose one side of it',
    )
    .refine(([, south, , north]) => south < north, 'South must be less than north'),
  maxZoom: maxZoomField.describe('The highest zoom level to fetch; 15 shows single buildings'),
})
