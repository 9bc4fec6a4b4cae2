CREATE TABLE `backup_copies` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`place_id` integer NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`created_at` integer NOT NULL,
	`state` text NOT NULL,
	`size_bytes` integer,
	`sha256` text,
	`made_at` integer,
	`upload` text,
	FOREIGN KEY (`place_id`) REFERENCES `copy_places`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `backup_copies_place_name` ON `backup_copies` (`place_id`,`name`);--> statement-breakpoint
CREATE TABLE `copy_places` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`enabled` integer NOT NULL,
	`sealed` text NOT NULL,
	`held_at` integer,
	`failures` integer DEFAULT 0 NOT NULL,
	`failing_since` integer,
	`problem` text,
	`next_try_at` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `copy_places_name_unique` ON `copy_places` (`name`);