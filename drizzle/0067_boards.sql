CREATE TABLE `board_readers` (
	`board_id` integer NOT NULL,
	`name` text NOT NULL,
	`user_id` integer,
	PRIMARY KEY(`board_id`, `name`),
	FOREIGN KEY (`board_id`) REFERENCES `boards`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE set null
);
--> statement-breakpoint
CREATE INDEX `board_readers_user` ON `board_readers` (`user_id`);--> statement-breakpoint
CREATE TABLE `boards` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`uid` text NOT NULL,
	`owner_id` integer NOT NULL,
	`name` text NOT NULL,
	`position` integer NOT NULL,
	`sharing` text NOT NULL,
	`charts` text NOT NULL,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `boards_uid_unique` ON `boards` (`uid`);--> statement-breakpoint
CREATE INDEX `boards_owner` ON `boards` (`owner_id`);--> statement-breakpoint
CREATE INDEX `boards_sharing` ON `boards` (`sharing`);