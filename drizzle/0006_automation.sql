CREATE TABLE `automation_runs` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`automation_id` integer NOT NULL,
	`key` text NOT NULL,
	`t` integer NOT NULL,
	`last_t` integer NOT NULL,
	`count` integer DEFAULT 1 NOT NULL,
	`outcome` text NOT NULL,
	`reason` text,
	`triggered_by` integer,
	`text` text,
	`packets` text DEFAULT '[]' NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `automation_runs_key` ON `automation_runs` (`automation_id`,`key`);--> statement-breakpoint
CREATE INDEX `automation_runs_automation` ON `automation_runs` (`automation_id`);--> statement-breakpoint
CREATE INDEX `automation_runs_last` ON `automation_runs` (`automation_id`,`last_t`);--> statement-breakpoint
CREATE INDEX `automation_runs_t` ON `automation_runs` (`last_t`);--> statement-breakpoint
CREATE TABLE `automations` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`enabled` integer NOT NULL,
	`rule` text NOT NULL,
	`revision` integer NOT NULL,
	`anchor_at` integer NOT NULL,
	`last_fired_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`updated_by` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `automations_name` ON `automations` (lower("name"));