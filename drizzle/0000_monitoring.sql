CREATE TABLE `channels` (
	`source_id` integer NOT NULL,
	`channel_index` integer NOT NULL,
	`name` text NOT NULL,
	`role` text NOT NULL,
	PRIMARY KEY(`source_id`, `channel_index`),
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `messages` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`source_id` integer,
	`packet_id` integer NOT NULL,
	`from_node_num` integer NOT NULL,
	`to_node_num` integer NOT NULL,
	`channel` integer NOT NULL,
	`text` text NOT NULL,
	`reply_id` integer,
	`emoji` integer DEFAULT false NOT NULL,
	`timestamp` integer NOT NULL,
	`rx_snr` real,
	`rx_rssi` integer,
	`hops_away` integer,
	`via_mqtt` integer DEFAULT false NOT NULL,
	`pki_encrypted` integer DEFAULT false NOT NULL,
	`direction` text NOT NULL,
	`delivery_state` text,
	`routing_error` text,
	`sent_by` text,
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `messages_from_packet` ON `messages` (`from_node_num`,`packet_id`);--> statement-breakpoint
CREATE INDEX `messages_timestamp` ON `messages` (`timestamp`);--> statement-breakpoint
CREATE INDEX `messages_channel` ON `messages` (`channel`,`id`);--> statement-breakpoint
CREATE TABLE `metrics` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`name` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `metrics_name_unique` ON `metrics` (`name`);--> statement-breakpoint
CREATE TABLE `nodes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`node_num` integer NOT NULL,
	`long_name` text,
	`short_name` text,
	`hw_model` integer,
	`role` integer,
	`is_licensed` integer DEFAULT false NOT NULL,
	`public_key` text,
	`previous_public_key` text,
	`key_mismatch` integer DEFAULT false NOT NULL,
	`spoof_suspected` integer DEFAULT false NOT NULL,
	`latitude` real,
	`longitude` real,
	`altitude` real,
	`precision_bits` integer,
	`position_time` integer,
	`battery_level` real,
	`voltage` real,
	`channel_utilization` real,
	`air_util_tx` real,
	`uptime_seconds` integer,
	`device_metrics_time` integer,
	`snr` real,
	`rssi` integer,
	`hops_away` integer,
	`last_heard` integer,
	`first_heard` integer NOT NULL,
	`via_mqtt` integer DEFAULT false NOT NULL,
	`channel` integer,
	`is_favorite` integer DEFAULT false NOT NULL,
	`is_ignored` integer DEFAULT false NOT NULL,
	`is_local` integer DEFAULT false NOT NULL,
	`notes` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `nodes_node_num_unique` ON `nodes` (`node_num`);--> statement-breakpoint
CREATE INDEX `nodes_last_heard` ON `nodes` (`last_heard`);--> statement-breakpoint
CREATE TABLE `positions` (
	`node_id` integer NOT NULL,
	`t` integer NOT NULL,
	`latitude` real NOT NULL,
	`longitude` real NOT NULL,
	`altitude` real,
	`precision_bits` integer,
	PRIMARY KEY(`node_id`, `t`),
	FOREIGN KEY (`node_id`) REFERENCES `nodes`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `revisions` (
	`name` text PRIMARY KEY NOT NULL,
	`value` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `settings` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `sources` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`local_node_num` integer,
	`firmware_version` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sources_name_unique` ON `sources` (`name`);--> statement-breakpoint
CREATE TABLE `telemetry` (
	`node_id` integer NOT NULL,
	`metric` integer NOT NULL,
	`t` integer NOT NULL,
	`v` real NOT NULL,
	PRIMARY KEY(`node_id`, `metric`, `t`)
) WITHOUT ROWID;--> statement-breakpoint
-- The starting point is random, so that an ETag of a replaced database never matches one of its successor.
INSERT INTO `revisions` (`name`, `value`) VALUES ('nodes', abs(random() / 4096));--> statement-breakpoint
CREATE TRIGGER `nodes_inserted` AFTER INSERT ON `nodes` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'nodes';
END;--> statement-breakpoint
CREATE TRIGGER `nodes_updated` AFTER UPDATE ON `nodes` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'nodes';
END;--> statement-breakpoint
CREATE TRIGGER `nodes_deleted` AFTER DELETE ON `nodes` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'nodes';
END;
