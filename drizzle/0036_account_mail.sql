CREATE TABLE `account_letters` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`uid` text NOT NULL,
	`user_id` integer NOT NULL,
	`kind` text NOT NULL,
	`email` text NOT NULL,
	`details` text NOT NULL,
	`sealed` text,
	`created_at` integer NOT NULL,
	`due_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`ended_at` integer,
	`result` text,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `account_letters_uid_unique` ON `account_letters` (`uid`);--> statement-breakpoint
CREATE INDEX `account_letters_due` ON `account_letters` (`due_at`) WHERE ended_at is null;--> statement-breakpoint
CREATE INDEX `account_letters_user` ON `account_letters` (`user_id`,`kind`,`created_at`);--> statement-breakpoint
CREATE INDEX `account_letters_created` ON `account_letters` (`created_at`);--> statement-breakpoint
CREATE TABLE `mail_links` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`purpose` text NOT NULL,
	`token_hash` text NOT NULL,
	`email` text NOT NULL,
	`state` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `mail_links_token_hash_unique` ON `mail_links` (`token_hash`);--> statement-breakpoint
CREATE INDEX `mail_links_user` ON `mail_links` (`user_id`);--> statement-breakpoint
CREATE INDEX `mail_links_expires` ON `mail_links` (`expires_at`);--> statement-breakpoint
CREATE TABLE `reset_requests` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`name` text NOT NULL,
	`known_to` text NOT NULL,
	`ip` text,
	`browser` text,
	`request_id` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `verified_emails` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`email` text NOT NULL,
	`verified_at` integer NOT NULL,
	`ended_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `verified_emails_user` ON `verified_emails` (`user_id`) WHERE ended_at is null;--> statement-breakpoint
CREATE INDEX `verified_emails_ended` ON `verified_emails` (`user_id`,`ended_at`);--> statement-breakpoint
ALTER TABLE `invitations` ADD `email` text;