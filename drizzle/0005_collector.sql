CREATE TABLE `collector_outbox` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`source` text NOT NULL,
	`received_at` integer NOT NULL,
	`replayed` integer NOT NULL,
	`gateway` integer,
	`data` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `packets_packet` ON `packets` (`from_node_num`,`packet_id`);