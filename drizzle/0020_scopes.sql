ALTER TABLE `users` ADD `channels` text;--> statement-breakpoint
ALTER TABLE `users` ADD `direct_read` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `users` ADD `direct_write` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `position_channel` integer DEFAULT -1;--> statement-breakpoint
ALTER TABLE `nodes` ADD `metrics_channel` integer DEFAULT -1;--> statement-breakpoint
ALTER TABLE `nodes` ADD `is_hidden` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `positions` ADD `channel` integer DEFAULT -1;--> statement-breakpoint
ALTER TABLE `telemetry` ADD `channel` integer DEFAULT -1;--> statement-breakpoint
ALTER TABLE `telemetry_daily` ADD `channel` integer DEFAULT -1;--> statement-breakpoint
ALTER TABLE `telemetry_hourly` ADD `channel` integer DEFAULT -1;--> statement-breakpoint
UPDATE `users` SET
  `direct_read` = coalesce((SELECT `can_read` FROM `user_permissions` WHERE `user_id` = `users`.`id` AND `resource` = 'messages'), 0),
  `direct_write` = coalesce((SELECT `can_write` FROM `user_permissions` WHERE `user_id` = `users`.`id` AND `resource` = 'messages'), 0);
