-- Rows from before: nobody wrote down who granted them; they are at least as old as their user.
CREATE TABLE `__new_user_permissions` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`resource` text NOT NULL,
	`can_read` integer NOT NULL,
	`can_write` integer NOT NULL,
	`granted_at` integer NOT NULL,
	`granted_by` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`granted_by`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
INSERT INTO `__new_user_permissions`("user_id", "resource", "can_read", "can_write", "granted_at") SELECT "user_id", "resource", "can_read", "can_write", coalesce((SELECT "created_at" FROM `users` WHERE `id` = "user_id"), 0) FROM `user_permissions` ORDER BY "user_id", `user_permissions`.`rowid`;--> statement-breakpoint
DROP TABLE `user_permissions`;--> statement-breakpoint
ALTER TABLE `__new_user_permissions` RENAME TO `user_permissions`;--> statement-breakpoint
CREATE UNIQUE INDEX `user_permissions_resource` ON `user_permissions` (`user_id`,`resource`);
