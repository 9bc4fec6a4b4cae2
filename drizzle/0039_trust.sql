CREATE TABLE `suspicions` (
	`node_num` integer NOT NULL,
	`source_id` integer NOT NULL,
	`gateway` integer NOT NULL,
	`reason` text NOT NULL,
	`claim` text NOT NULL,
	`count` integer NOT NULL,
	`first_at` integer NOT NULL,
	`last_at` integer NOT NULL,
	PRIMARY KEY(`node_num`, `source_id`, `gateway`, `reason`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `suspicions_last` ON `suspicions` (`last_at`);--> statement-breakpoint
ALTER TABLE `messages` ADD `conflicting` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `receptions` ADD `differs` text;--> statement-breakpoint
ALTER TABLE `nodes` ADD `key_heard` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `name_heard` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `position_heard` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `key_confirmed` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `last_heard_by_radio` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `last_heard_by_broker` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `telemetry_time` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `refused_long_name` text;--> statement-breakpoint
ALTER TABLE `nodes` ADD `refused_short_name` text;--> statement-breakpoint
UPDATE `nodes` SET `last_heard_by_radio` = iif(`heard_by_radio` and not `via_mqtt`, `last_heard`, null),
  `last_heard_by_broker` = iif(`heard_by_radio` and not `via_mqtt`, null, `last_heard`)
  WHERE `last_heard` is not null;--> statement-breakpoint
-- A signature proves something only with a key whose CRC-32 is the node's number. Bit by bit, each byte's lowest first,
-- out of base64. SQLite has no xor: a + b - 2 * (a & b).
WITH RECURSIVE crc(node_num, k, n, c) AS (
  SELECT node_num, public_key, 0, 4294967295 FROM nodes WHERE key_signed
  UNION ALL SELECT node_num, k, n + 1, iif((c & 1) <> ((((
      (max(0, instr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', substr(k, n / 24 * 4 + 1, 1)) - 1) << 18)
      + (max(0, instr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', substr(k, n / 24 * 4 + 2, 1)) - 1) << 12)
      + (max(0, instr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', substr(k, n / 24 * 4 + 3, 1)) - 1) << 6)
      + max(0, instr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', substr(k, n / 24 * 4 + 4, 1)) - 1)
    ) >> (16 - 8 * (n / 8 % 3))) >> (n % 8)) & 1),
    (c >> 1) + 3988292384 - 2 * ((c >> 1) & 3988292384), c >> 1)
  FROM crc WHERE n < 256
)
UPDATE `nodes` SET `key_signed` = 0, `name_signed` = 0, `position_signed` = 0, `signed_at` = null
WHERE `key_signed` and `node_num` not in (SELECT node_num FROM crc WHERE n = 256 and 4294967295 - c = node_num);
