/** Who sees a board besides its owner. */
export const BOARD_SHARINGS = ['nobody', 'named', 'everybody'] as const

/** Boards of one user, and those of others in a list. */
export const MAX_BOARDS = 20
export const MAX_LISTED_BOARDS = 200
export const MAX_BOARD_NAME = 64
export const MAX_BOARD_READERS = 20

export const MAX_BOARD_CHARTS = 12
export const MAX_CHART_TITLE = 64

/** Nodes and measurements of one chart, and lines of both: more can't be told apart. */
export const MAX_CHART_NODES = 10
export const MAX_CHART_METRICS = 4
export const MAX_CHART_LINES = 20
/** A chart has an axis on either side. */
export const MAX_CHART_UNITS = 2
