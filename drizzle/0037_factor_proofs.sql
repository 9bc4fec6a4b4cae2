CREATE TABLE `passkey_handles` (
	`user_id` integer PRIMARY KEY NOT NULL,
	`handle` text NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `passkey_handles_handle_unique` ON `passkey_handles` (`handle`);--> statement-breakpoint
ALTER TABLE `sessions` ADD `factor_at` integer;