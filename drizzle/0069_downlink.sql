CREATE TABLE `radio_commands` (
	`id` text PRIMARY KEY NOT NULL,
	`source_id` integer NOT NULL,
	`kind` text NOT NULL,
	`content` text NOT NULL,
	`asked_by` text NOT NULL,
	`from_node_num` integer NOT NULL,
	`packet_id` integer NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`claim` text,
	`ended_at` integer,
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `radio_commands_open` ON `radio_commands` (`source_id`,`created_at`) WHERE ended_at is null;--> statement-breakpoint
CREATE INDEX `radio_commands_packet` ON `radio_commands` (`from_node_num`,`packet_id`);--> statement-breakpoint
CREATE TABLE `radio_listeners` (
	`source_id` integer PRIMARY KEY NOT NULL,
	`kinds` text NOT NULL,
	`listened_at` integer NOT NULL,
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `taken_commands` (
	`id` text PRIMARY KEY NOT NULL,
	`claim` text NOT NULL,
	`taken_at` integer NOT NULL,
	`from_node_num` integer NOT NULL,
	`packet_id` integer NOT NULL,
	`refusal` text,
	`told` text
);
