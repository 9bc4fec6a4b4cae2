CREATE TABLE `node_requests` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`source_id` integer,
	`kind` text NOT NULL,
	`request_id` integer NOT NULL,
	`from_node_num` integer NOT NULL,
	`to_node_num` integer NOT NULL,
	`timestamp` integer NOT NULL,
	`answered_at` integer,
	`state` text NOT NULL,
	`routing_error` text,
	`notice` text,
	`requested_by` text NOT NULL,
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `node_requests_request` ON `node_requests` (`from_node_num`,`request_id`);--> statement-breakpoint
CREATE INDEX `node_requests_asked` ON `node_requests` (`to_node_num`);--> statement-breakpoint
CREATE TABLE `radio_marks` (
	`radio_num` integer NOT NULL,
	`node_num` integer NOT NULL,
	`is_favorite` integer DEFAULT false NOT NULL,
	`is_ignored` integer DEFAULT false NOT NULL,
	`problem` text,
	PRIMARY KEY(`radio_num`, `node_num`)
);
--> statement-breakpoint
CREATE TABLE `traceroute_answers` (
	`traceroute_id` integer NOT NULL,
	`node_num` integer NOT NULL,
	`t` integer NOT NULL,
	`snr_towards` real,
	`snr_back` real,
	PRIMARY KEY(`traceroute_id`, `node_num`),
	FOREIGN KEY (`traceroute_id`) REFERENCES `traceroutes`(`id`) ON UPDATE no action ON DELETE cascade
);
