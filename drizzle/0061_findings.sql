CREATE TABLE `finding_looks` (
	`rule` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `finding_mutes` (
	`rule` text NOT NULL,
	`subject` text NOT NULL,
	`muted_at` integer NOT NULL,
	`muted_by` text,
	PRIMARY KEY(`rule`, `subject`)
);
--> statement-breakpoint
CREATE TABLE `findings` (
	`rule` text NOT NULL,
	`subject` text NOT NULL,
	`since` integer NOT NULL,
	`is_likely` integer NOT NULL,
	`nodes` text NOT NULL,
	`channels` text NOT NULL,
	`evidence` text NOT NULL,
	PRIMARY KEY(`rule`, `subject`)
);
