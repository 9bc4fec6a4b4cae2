CREATE TABLE `sweeps` (
	`name` text PRIMARY KEY NOT NULL,
	`place` text,
	`cutoff` integer NOT NULL,
	`done_before` integer NOT NULL
);
