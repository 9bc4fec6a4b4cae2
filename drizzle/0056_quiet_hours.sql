ALTER TABLE `users` ADD `quiet_hours` text;--> statement-breakpoint
ALTER TABLE `alert_deliveries` ADD `held_until` integer;