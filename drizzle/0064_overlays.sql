CREATE TABLE `overlay_parts` (
	`overlay_id` integer NOT NULL,
	`part` integer NOT NULL,
	`features` text NOT NULL,
	PRIMARY KEY(`overlay_id`, `part`)
);
--> statement-breakpoint
CREATE TABLE `overlays` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`name` text NOT NULL,
	`is_public` integer NOT NULL,
	`is_whole` integer NOT NULL,
	`created_at` integer NOT NULL,
	`created_by` text NOT NULL,
	`shapes` integer NOT NULL,
	`bytes` integer NOT NULL
);
