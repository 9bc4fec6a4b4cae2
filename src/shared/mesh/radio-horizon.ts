/**
 * The radius of an earth on which radio waves would run straight: 4/3 of the real one for the refraction of the standard
 * atmosphere (Federal Standard 1037C, "effective Earth radius"; also Recommendation ITU-R P.310).
 */
const EFFECTIVE_METRES = (4 / 3) * 6_371_008.8

/**
 * How far an antenna at this height sees the ground of a smooth earth, in metres: the tangent to a sphere of radius R
 * from the height h is √(2Rh + h²) long, about 4.12 km · √h.
 */
export function radioHorizon(heightMetres: number): number {
  return Math.sqrt(heightMetres * (2 * EFFECTIVE_METRES + heightMetres))
}
