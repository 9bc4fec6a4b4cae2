CREATE TABLE `provider_logouts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`issuer` text NOT NULL,
	`sid` text,
	`subject` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `provider_logouts_created` ON `provider_logouts` (`created_at`);