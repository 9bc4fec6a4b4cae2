CREATE TABLE `telemetry_daily_runs` (
	`node_id` integer NOT NULL,
	`t` integer NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`node_id`, `t`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `telemetry_hourly_runs` (
	`node_id` integer NOT NULL,
	`t` integer NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`node_id`, `t`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `telemetry_places` (
	`name` text PRIMARY KEY NOT NULL,
	`t` integer NOT NULL,
	`node_id` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `telemetry_runs` (
	`node_id` integer NOT NULL,
	`t` integer NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`node_id`, `t`)
) WITHOUT ROWID;
