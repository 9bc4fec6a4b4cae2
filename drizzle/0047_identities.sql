CREATE TABLE `identities` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`issuer` text NOT NULL,
	`subject` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `identities_subject` ON `identities` (`issuer`,`subject`);--> statement-breakpoint
CREATE UNIQUE INDEX `identities_user` ON `identities` (`user_id`,`issuer`);--> statement-breakpoint
INSERT INTO `identities` (`user_id`, `issuer`, `subject`, `created_at`)
	SELECT `id`, `oidc_issuer`, `oidc_subject`, coalesce(
		(SELECT max(`timestamp`) FROM `audit_log` WHERE `audit_log`.`user_id` = `users`.`id` AND `action` = 'account_linked'),
		`created_at`
	) FROM `users` WHERE `oidc_issuer` IS NOT NULL AND `oidc_subject` IS NOT NULL ORDER BY `id`;--> statement-breakpoint
-- From here on the column names the provider whose groups rule. For a local account that is one only if they did so far.
UPDATE `users` SET `oidc_issuer` = NULL WHERE `auth_provider` = 'local' AND NOT EXISTS (
	SELECT 1 FROM `provider_roles` WHERE `provider_roles`.`user_id` = `users`.`id` AND `provider_roles`.`issuer` = `users`.`oidc_issuer`
);--> statement-breakpoint
DROP INDEX `users_oidc`;--> statement-breakpoint
ALTER TABLE `users` DROP COLUMN `oidc_subject`;