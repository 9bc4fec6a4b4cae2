/** The parts of Leaflet that draw tiles, which not every map has. The types are those of the whole. */
import type { GridLayer as Grid, gridLayer as makeGrid, tileLayer as makeTiles } from 'leaflet'
import * as grid from 'leaflet/src/layer/tile/GridLayer.js'
import * as tiles from 'leaflet/src/layer/tile/TileLayer.js'

export const GridLayer: typeof Grid = grid.GridLayer
export const gridLayer: typeof makeGrid = grid.gridLayer
export const tileLayer: typeof makeTiles = tiles.tileLayer
