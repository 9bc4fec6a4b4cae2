CREATE TABLE `retention_plans` (
	`table_name` text PRIMARY KEY NOT NULL,
	`rows` integer NOT NULL,
	`rows_per_day` integer NOT NULL,
	`limit_bytes` integer NOT NULL,
	`planned_at` integer NOT NULL
);
