CREATE TABLE `device_config` (
	`source_id` integer NOT NULL,
	`section` text NOT NULL,
	`values` text NOT NULL,
	`secrets` text NOT NULL,
	`read_at` integer NOT NULL,
	PRIMARY KEY(`source_id`, `section`),
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `device_config_changes` (
	`source_id` integer NOT NULL,
	`section` text NOT NULL,
	`id` text NOT NULL,
	`state` text NOT NULL,
	`fields` text NOT NULL,
	`differing` text NOT NULL,
	`reason` text,
	`requested_at` integer NOT NULL,
	`requested_by` text,
	`settled_at` integer,
	PRIMARY KEY(`source_id`, `section`),
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE cascade
);
