/**
 * The maximum length of a text in bytes of UTF-8. The radio's own limits are 232 for a broadcast, 227 for a reply, 220
 * for a direct message.
 */
export const MAX_TEXT_BYTES = 200

/** Bytes of UTF-8 in the name and the description of a waypoint: the radios' fields of 30 and 100 end with a zero. */
export const MAX_WAYPOINT_NAME = 29
export const MAX_WAYPOINT_DESCRIPTION = 99

/** Days that a kind of data can be kept. */
export const MAX_RETENTION_DAYS = 36_500
/** Seconds after which a node must be heard again to count as active. */
export const MAX_ACTIVE_SECONDS = 2_592_000

// Limits of form fields and of the service, in characters unless they say bytes.

/** A search term in a list. */
export const MAX_SEARCH = 200
/** Parts of a text that are searched together with the first. */
export const MAX_PARTS = 10
export const MAX_USERNAME = 64
export const MAX_DISPLAY_NAME = 100
export const MAX_MESH_NAME = 40
export const MAX_EMAIL = 254
/** The subject of a user at an OpenID provider: OpenID Connect Core 1.0, section 2. */
export const MAX_SUBJECT = 255
/** A user name in the sign-in form. It may be longer than any valid name, because an overlong one is simply wrong. */
export const MAX_SIGN_IN_NAME = 1024
/** A password in a form; the limit in bytes for new passwords is a separate rule. */
export const MAX_TYPED_PASSWORD = 4096
export const MAX_TOKEN_NAME = 100
export const MAX_FRAME_NAME = 100
/** Notes about a node. */
export const MAX_NOTES = 2000
/** For automation and alerts: the name of a rule, a text with its tokens, a reaction, and a message to try. */
export const MAX_RULE_NAME = 64
export const MAX_TEMPLATE = 400
export const MAX_REACTION = 16
export const MAX_SAMPLE = 300
/** A cron pattern as it is typed, with more spaces than it needs. */
export const MAX_CRON = 310

/** Characters of a code of an authenticator app as it is typed: six digits, and spaces around them. */
export const MAX_TYPED_CODE = 10

/** Characters of a recovery code as it is typed. */
export const MAX_RECOVERY_CODE = 100

/** Characters of the owner's name for a passkey. */
export const MAX_PASSKEY_NAME = 64

/** Characters of the address of map tiles, and of their attribution. */
export const MAX_TILE_URL = 2048
export const MAX_ATTRIBUTION = 300

/** The maximum number of event streams that one process keeps open for anonymous callers: in total and per address. */
export const MAX_PUBLIC_STREAMS = 1000
export const MAX_PUBLIC_STREAMS_OF_ADDRESS = 10

/** Gateways listed for one suspected node: further ones can be made up. */
export const MAX_SUSPICIONS = 20
/** Refused identities listed for one node. */
export const MAX_REFUSED_IDENTITIES = 20

/** How far the page System counts failed sign-ins, and waiting alert messages. */
export const MAX_COUNTED = 500

/** Connections of one service, and characters of a connection's name. */
export const MAX_CONNECTIONS = 32
export const MAX_CONNECTION_NAME = 64
/** Characters of a host name, and of a key with its name. */
export const MAX_HOST = 253
export const MAX_DEVICE_PATH = 255
/** Characters of the address of a radio or a broker. */
export const MAX_ADDRESS = 2048
export const MAX_TOPIC = 1024
export const MAX_TOPICS = 10
export const MAX_CONNECTION_KEYS = 32
/** Characters of certificates in PEM form. */
export const MAX_PEM = 100_000
/** Characters of the password for a broker. */
export const MAX_BROKER_PASSWORD = 1024
/** Characters of a URL of channels; one with eight channels has about 1,000. */
export const MAX_CHANNEL_URL = 4000
/** Characters of a configuration file of a radio; one with all settings has about 6,000. */
export const MAX_CONFIGURATION_FILE = 60_000

/** Characters of a public key of age as it is typed, of the name of whoever keeps the private one, and of its end. */
export const MAX_TYPED_KEY = 200
export const MAX_KEY_NAME = 64
export const MAX_TYPED_END = 10
/** Characters of a path, of the region of a bucket, of its name, and of what is before the names in it. */
export const MAX_PATH = 1024
export const MAX_REGION = 64
export const MAX_BUCKET = 63
export const MAX_PREFIX = 200

/** Networks that may connect to a port for apps, and characters of their list. */
export const MAX_NETWORKS = 32
export const MAX_NETWORK_LIST = 1500

/** Shapes that somebody put on the map: how many overlays, bytes and shapes of one, and points of one shape. */
export const MAX_OVERLAYS = 20
export const MAX_OVERLAY_BYTES = 5_000_000
export const MAX_OVERLAY_SHAPES = 20_000
/** A shape with this many fits into one request. */
export const MAX_SHAPE_POINTS = 8000
export const MAX_OVERLAY_NAME = 100
/** Characters of the name and the description of one shape. */
export const MAX_SHAPE_NAME = 100
export const MAX_SHAPE_DESCRIPTION = 1000
