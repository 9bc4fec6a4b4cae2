CREATE TABLE `idempotency_keys` (
	`user_id` integer NOT NULL,
	`key` text NOT NULL,
	`request_hash` text NOT NULL,
	`message_id` integer NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `key`),
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `idempotency_keys_created` ON `idempotency_keys` (`created_at`);--> statement-breakpoint
CREATE INDEX `idempotency_keys_message` ON `idempotency_keys` (`message_id`);--> statement-breakpoint
CREATE TABLE `neighbors` (
	`node_num` integer NOT NULL,
	`neighbor_num` integer NOT NULL,
	`snr` real NOT NULL,
	`t` integer NOT NULL,
	PRIMARY KEY(`node_num`, `neighbor_num`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `packets` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`source_id` integer NOT NULL,
	`t` integer NOT NULL,
	`packet_id` integer NOT NULL,
	`from_node_num` integer NOT NULL,
	`to_node_num` integer NOT NULL,
	`gateway` integer,
	`channel` integer NOT NULL,
	`port` integer,
	`rx_snr` real,
	`rx_rssi` integer,
	`hops_away` integer,
	`hop_limit` integer NOT NULL,
	`via_mqtt` integer NOT NULL,
	`pki_encrypted` integer NOT NULL,
	`replayed` integer NOT NULL,
	`payload` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `packets_from` ON `packets` (`from_node_num`,`id`);--> statement-breakpoint
CREATE INDEX `packets_port` ON `packets` (`port`,`id`);--> statement-breakpoint
CREATE TABLE `receptions` (
	`message_id` integer NOT NULL,
	`source_id` integer NOT NULL,
	`gateway` integer NOT NULL,
	`t` integer NOT NULL,
	`rx_snr` real,
	`rx_rssi` integer,
	`hops_away` integer,
	PRIMARY KEY(`message_id`, `source_id`, `gateway`),
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `telemetry_daily` (
	`node_id` integer NOT NULL,
	`metric` integer NOT NULL,
	`t` integer NOT NULL,
	`n` integer NOT NULL,
	`min` real NOT NULL,
	`max` real NOT NULL,
	`sum` real NOT NULL,
	`last` real NOT NULL,
	PRIMARY KEY(`node_id`, `metric`, `t`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `telemetry_dirty` (
	`node_id` integer NOT NULL,
	`metric` integer NOT NULL,
	`t` integer NOT NULL,
	PRIMARY KEY(`node_id`, `metric`, `t`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `telemetry_hourly` (
	`node_id` integer NOT NULL,
	`metric` integer NOT NULL,
	`t` integer NOT NULL,
	`n` integer NOT NULL,
	`min` real NOT NULL,
	`max` real NOT NULL,
	`sum` real NOT NULL,
	`last` real NOT NULL,
	PRIMARY KEY(`node_id`, `metric`, `t`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `traceroutes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`source_id` integer,
	`request_id` integer NOT NULL,
	`from_node_num` integer NOT NULL,
	`to_node_num` integer NOT NULL,
	`timestamp` integer NOT NULL,
	`answered_at` integer,
	`state` text NOT NULL,
	`routing_error` text,
	`route` text,
	`requested_by` text,
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `traceroutes_request` ON `traceroutes` (`from_node_num`,`request_id`);--> statement-breakpoint
CREATE TABLE `waypoints` (
	`id` integer PRIMARY KEY NOT NULL,
	`from_node_num` integer NOT NULL,
	`t` integer NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`icon` text,
	`latitude` real NOT NULL,
	`longitude` real NOT NULL,
	`expires_at` integer,
	`locked_to` integer
);
