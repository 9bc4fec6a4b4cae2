CREATE TABLE `provider_claims` (
	`issuer` text NOT NULL,
	`path` text NOT NULL,
	`seen_at` integer NOT NULL,
	PRIMARY KEY(`issuer`, `path`)
);
--> statement-breakpoint
CREATE TABLE `provider_cutoffs` (
	`user_id` integer NOT NULL,
	`issuer` text NOT NULL,
	`ended_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `issuer`),
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
ALTER TABLE `api_tokens` ADD `held_at` integer;--> statement-breakpoint
ALTER TABLE `provider_logouts` ADD `token_hash` text;--> statement-breakpoint
ALTER TABLE `provider_logouts` ADD `is_done` integer DEFAULT false NOT NULL;