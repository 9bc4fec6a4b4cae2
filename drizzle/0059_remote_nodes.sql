CREATE TABLE `remote_actions` (
	`id` text PRIMARY KEY NOT NULL,
	`node_num` integer NOT NULL,
	`kind` text NOT NULL,
	`section` text,
	`state` text NOT NULL,
	`fields` text NOT NULL,
	`differing` text NOT NULL,
	`before` text NOT NULL,
	`reason` text,
	`detail` text,
	`requested_at` integer NOT NULL,
	`requested_by` text,
	`settled_at` integer,
	FOREIGN KEY (`node_num`) REFERENCES `remote_nodes`(`node_num`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `remote_actions_of_node` ON `remote_actions` (`node_num`,`requested_at`);--> statement-breakpoint
CREATE TABLE `remote_nodes` (
	`node_num` integer PRIMARY KEY NOT NULL,
	`public_key` text,
	`firmware_version` text,
	`named_at` integer NOT NULL,
	`named_by` text
);
--> statement-breakpoint
CREATE TABLE `remote_sections` (
	`node_num` integer NOT NULL,
	`section` text NOT NULL,
	`values` text NOT NULL,
	`secrets` text NOT NULL,
	`read_at` integer NOT NULL,
	PRIMARY KEY(`node_num`, `section`),
	FOREIGN KEY (`node_num`) REFERENCES `remote_nodes`(`node_num`) ON UPDATE no action ON DELETE cascade
);
