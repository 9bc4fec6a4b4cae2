ALTER TABLE `channels` ADD `identity` text;--> statement-breakpoint
ALTER TABLE `collector_outbox` ADD `identity` text;--> statement-breakpoint
-- Channels of brokers were numbered by their hash, as if it were a slot of a radio; from here on by 256 + hash.
-- A radio has the slots 0 to 7, and a broker that a collector listens to is called like a URL.
UPDATE `messages` SET `channel` = `channel` + 256 WHERE `pki_encrypted` = 0 AND `direction` = 'in' AND (
	`channel` BETWEEN 8 AND 255
	OR `channel` BETWEEN 0 AND 7 AND `source_id` IN (SELECT `id` FROM `sources` WHERE `kind` = 'mqtt' OR `kind` = 'ingest' AND `name` LIKE '%://%')
);--> statement-breakpoint
UPDATE `packets` SET `channel` = `channel` + 256 WHERE `pki_encrypted` = 0 AND `port` IS NOT NULL AND (
	`channel` BETWEEN 8 AND 255
	OR `channel` BETWEEN 0 AND 7 AND `source_id` IN (SELECT `id` FROM `sources` WHERE `kind` = 'mqtt' OR `kind` = 'ingest' AND `name` LIKE '%://%')
);--> statement-breakpoint
UPDATE `nodes` SET `channel` = `channel` + 256 WHERE `channel` BETWEEN 8 AND 255;--> statement-breakpoint
UPDATE `channels` SET `channel_index` = `channel_index` + 256, `identity` = `channel_index` || ':' || `name` WHERE
	`channel_index` BETWEEN 8 AND 255
	OR `channel_index` BETWEEN 0 AND 7 AND `source_id` IN (SELECT `id` FROM `sources` WHERE `kind` = 'mqtt' OR `kind` = 'ingest' AND `name` LIKE '%://%');
