ALTER TABLE `invitations` ADD `ended_at` integer;--> statement-breakpoint
ALTER TABLE `invitations` ADD `ended_for` text;--> statement-breakpoint
ALTER TABLE `alert_destinations` ADD `held_at` integer;--> statement-breakpoint
ALTER TABLE `alert_destinations` ADD `held_for` text;--> statement-breakpoint
ALTER TABLE `alert_destinations` ADD `news_at` integer;--> statement-breakpoint
ALTER TABLE `alert_destinations` ADD `news_session` integer;