CREATE TABLE `newcomers` (
	`source_id` integer PRIMARY KEY NOT NULL,
	`hour` integer NOT NULL,
	`asked` integer NOT NULL,
	`refused` integer NOT NULL,
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
ALTER TABLE `nodes` ADD `days_heard` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `last_heard_day` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `heard_by_radio` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `source_id` integer;