CREATE TABLE `oidc_attempts` (
	`state_hash` text PRIMARY KEY NOT NULL,
	`issuer` text NOT NULL,
	`return_to` text NOT NULL,
	`address` text NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `oidc_attempts_expires` ON `oidc_attempts` (`expires_at`);--> statement-breakpoint
CREATE INDEX `oidc_attempts_address` ON `oidc_attempts` (`address`);