CREATE TABLE `gateways` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`source_id` integer NOT NULL,
	`gateway` integer NOT NULL,
	`days` integer NOT NULL,
	`last_day` integer NOT NULL,
	`hour` integer NOT NULL,
	`taken` integer NOT NULL,
	FOREIGN KEY (`source_id`) REFERENCES `sources`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `gateways_of_source` ON `gateways` (`source_id`,`gateway`);--> statement-breakpoint
ALTER TABLE `newcomers` ADD `opened` integer DEFAULT 0 NOT NULL;